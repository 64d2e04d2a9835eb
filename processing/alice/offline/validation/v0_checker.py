"""V0 candidates against true decays of K0S and Lambda."""

from collections import Counter
from collections.abc import Mapping
from typing import Any

import numpy as np
from numpy.typing import NDArray

from hltnode.processing.alice.detector_constants import LAMBDA_MASS, NEUTRAL_KAON_MASS
from hltnode.processing.alice.offline.validation.matching import MATCH_LEVEL, Integers, Matches
from hltnode.protocol.alice.tpc_banks import Origin, TpcTruth

HARD = 1.0
"""GeV/c: transverse momentum of the mothers that are counted apart. Tracks of softer ones scatter too much."""
KINDS: Mapping[str, tuple[int, float]] = {"K0S": (310, NEUTRAL_KAON_MASS), "Lambda": (3122, LAMBDA_MASS)}
"""PDG number, the same for the antiparticle, and mass in GeV/c2."""

MASSES = {310: "mass_k0s", 3122: "mass_lambda", -3122: "mass_antilambda"}
"""The field of the record by the PDG number of the mother."""


class V0Checker:
    """Counts V0 candidates of events.

    A V0 is findable if both daughters are; it is found if a candidate has a matched track of each. All candidates
    without a true mother are fakes.
    """

    def __init__(self) -> None:
        self.candidates = 0
        self.fakes = 0
        self._findable: Counter[str] = Counter()
        self._found: Counter[str] = Counter()
        self._masses: dict[str, list[float]] = {kind: [] for kind in KINDS}

    def add(self, truth: TpcTruth, findable: Integers, matches: Matches, v0s: NDArray[np.void]) -> None:
        """Count an event. findable: numbers of particles. matches: those of merged tracks. v0s: the records."""
        particles = truth.particles
        mother = np.where(particles["origin"] == int(Origin.DECAY), particles["mother"].astype(np.int64), -1)
        n_daughters = np.bincount(mother[findable][mother[findable] >= 0], minlength=len(particles))
        particle = np.where(matches.fraction >= MATCH_LEVEL, matches.particle, -1)
        own, other = (particle[v0s[name].astype(np.int64)] for name in ("positive", "negative"))
        of_v0 = np.where((own >= 0) & (other >= 0) & (own != other), mother[own], -1)
        of_v0 = np.where((of_v0 >= 0) & (of_v0 == mother[other]), of_v0, -1)
        self.candidates += len(v0s)
        self.fakes += int((of_v0 < 0).sum())
        first = np.unique(of_v0, return_index=True)[1]
        first = first[of_v0[first] >= 0]
        pt = np.hypot(*particles["momentum"][:, :2].astype(float).T)
        is_found = np.zeros(len(particles), bool)
        is_found[of_v0[first]] = True
        for kind, (pdg, _) in KINDS.items():
            of_kind = np.abs(particles["pdg"]) == pdg
            both = of_kind & (n_daughters == 2)
            for name, chosen in ((kind, both), (f"{kind} hard", both & (pt >= HARD))):
                self._findable[name] += int(chosen.sum())
                self._found[name] += int((chosen & is_found).sum())
            for i in first[of_kind[of_v0[first]]].tolist():
                self._masses[kind].append(float(v0s[MASSES[int(particles["pdg"][of_v0[i]])]][i]))

    def result(self) -> dict[str, Any]:
        """Numbers of each kind. peak: median of the mass minus the true one; width: half of its central 68.3 %."""
        return {
            "candidates": self.candidates,
            "fakes": self.fakes / self.candidates if self.candidates else None,
            **{kind: self._of_kind(kind) for kind in KINDS},
        }

    def _of_kind(self, kind: str) -> dict[str, Any]:
        masses = np.array(self._masses[kind])
        low, middle, high = np.percentile(masses, [15.87, 50.0, 84.13]).tolist() if len(masses) else [np.nan] * 3
        return {
            "findable": self._findable[kind],
            "efficiency": self._share(kind),
            "findable_hard": self._findable[f"{kind} hard"],
            "efficiency_hard": self._share(f"{kind} hard"),
            "true_candidates": len(masses),
            "peak": middle - KINDS[kind][1] if len(masses) else None,
            "width": (high - low) / 2.0 if len(masses) else None,
        }

    def _share(self, name: str) -> float | None:
        return self._found[name] / self._findable[name] if self._findable[name] else None
