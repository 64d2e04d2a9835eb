"""Lines on rings, and velocity and missing mass against float64."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import awkward as ak
import numpy as np
from numpy.typing import NDArray

import hltnode
from hltnode.processing.na62.detector_constants import (
    FOCAL_LENGTH,
    KAON_MASS,
    KAON_MOMENTUM,
    MUON_MASS,
    PION_MASS,
    REFRACTIVITY,
)
from hltnode.processing.na62.offline.simulation.decays import Decay
from hltnode.protocol.na62.rich_banks import encode_hits
from tests.processing.na62.rich_events import RichResult, mep_of_payloads, run_chain, simulated


@dataclass
class Rings:
    """Quantities of the rings of an event, by the formulas of the textbook in float64."""

    radius: NDArray[np.float64]
    x: NDArray[np.float64]
    y: NDArray[np.float64]
    beta: NDArray[np.float64] = field(init=False)
    pion: NDArray[np.float64] = field(init=False)
    muon: NDArray[np.float64] = field(init=False)

    def __post_init__(self) -> None:
        self.beta = 1 / ((1 + REFRACTIVITY) * np.cos(np.arctan(self.radius / FOCAL_LENGTH)))
        self.beta = np.minimum(self.beta, np.sqrt(1 - 1e-7))
        self.pion, self.muon = self.missing(PION_MASS), self.missing(MUON_MASS)

    def missing(self, mass: float) -> NDArray[np.float64]:
        p = mass * self.beta / np.sqrt(1 - self.beta**2)
        energy = np.hypot(KAON_MOMENTUM, KAON_MASS) - np.hypot(p, mass)
        slopes = np.array([self.x / FOCAL_LENGTH, self.y / FOCAL_LENGTH, np.ones_like(p)])
        momentum = np.array([[0.0], [0.0], [KAON_MOMENTUM]]) - p * slopes / np.linalg.norm(slopes, axis=0)
        squared: NDArray[np.float64] = energy**2 - (momentum**2).sum(0)
        return squared


EDGES: dict[str, tuple[str, Callable[[Rings], Any]]] = {
    "RingCount": ("min_rings = 2\nmax_rings = 2\n", lambda rings: [len(rings.radius) == 2]),
    "RingRadius": ("min_radius = 150.0\nmax_radius = 180.0\n", lambda r: (r.radius >= 150) & (r.radius <= 180)),
    "RingVelocity": ("min_beta = 0.99997\nmax_beta = 0.99999\n", lambda r: (r.beta >= 0.99997) & (r.beta <= 0.99999)),
    "MissingMass": ("min_mass2 = -0.01\nmax_mass2 = 0.03\n", lambda r: (r.pion >= -0.01) & (r.pion <= 0.03)),
    "PionAndNeutralPion": (
        "width = 0.015\nmuon_veto = 0.02\n",
        lambda r: (np.abs(r.pion - 0.1349768**2) <= 0.015) & (np.abs(r.muon) > 0.02),
    ),
}


def of_event(found: RichResult, event: int) -> Rings:
    return Rings(*(found.rings[event][name].astype(np.float64) for name in ("radius", "x", "y")))


def test_each_line_type_selects_as_in_float64() -> None:
    events = [*simulated(61, 150), *simulated(62, 30, Decay.THREE_PIONS)]
    lines = "".join(f'[[lines]]\ntype = "{name}"\nname = "{name}"\n{text}' for name, (text, _) in EDGES.items())
    found = run_chain(mep_of_payloads([encode_hits(hits) for hits in events]), lines)
    for name, (_, select) in EDGES.items():
        expected = [bool(np.any(select(of_event(found, i)))) for i in range(len(events))]
        assert [name in selected for selected in found.lines] == expected, name
        assert 5 < sum(expected) < len(events) - 5, name


def test_a_ring_at_exactly_both_cuts_is_selected(tmp_path: Path) -> None:
    cuts = {
        "RingRadius": ("min_radius", "max_radius", "rings.radius"),
        "RingVelocity": ("min_beta", "max_beta", "rings.beta"),
        "MissingMass": ("min_mass2", "max_mass2", "rings.missing_mass2_pion"),
    }
    path = hltnode.simulate(tmp_path / "rings.mdf", 4, chain="na62_rich", seed=64, jobs=1)
    options: dict[str, Any] = {"chain": "na62_rich", "backend": "cpu", "threads": 1}
    fields = [name for _, _, name in cuts.values()]
    rings = hltnode.process(path, fields, **options).rings
    text = ""
    for kind, (lowest, highest, name) in cuts.items():
        value = float(ak.flatten(rings[name.removeprefix("rings.")])[0])
        text += f'[[lines]]\ntype = "{kind}"\nname = "{kind}"\n{lowest} = {value!r}\n{highest} = {value!r}\n'
    trigger = tmp_path / "trigger.toml"
    trigger.write_text(text)
    decisions = hltnode.process(path, [f"decisions.{kind}" for kind in cuts], trigger=trigger, **options).decisions
    assert [bool(ak.any(decisions[kind])) for kind in cuts] == [True] * 3


def selected_fraction(decay: Decay, seed: int) -> float:
    """Fraction of the events of a decay that the shipped line selects."""
    events = [encode_hits(hits) for hits in simulated(seed, 150, decay)]
    return float(np.mean(["RichPionAndNeutralPion" in each for each in run_chain(mep_of_payloads(events)).lines]))


def test_the_shipped_line_tells_two_pions_from_muons() -> None:
    signal, background = selected_fraction(Decay.TWO_PIONS, 71), selected_fraction(Decay.MUON, 72)
    assert signal > 0.7
    assert background < 0.5 * signal


def test_velocities_have_all_digits(tmp_path: Path) -> None:
    """1 - beta^2 is that of the textbook in float64; a formula of first order differs by up to 1e-4 of it."""
    path = hltnode.simulate(tmp_path / "rings.mdf", 200, chain="na62_rich", seed=63, jobs=1)
    fields = ("rings.radius", "rings.inverse_gamma2", "rings.beta")
    rings = hltnode.process(path, fields, chain="na62_rich", backend="cpu", threads=1).rings
    radius, found = (ak.flatten(rings[name]).to_numpy().astype(np.float64) for name in ("radius", "inverse_gamma2"))
    small = radius < 150.0
    assert small.sum() > 10
    sine = np.sin(np.arctan(radius[small] / FOCAL_LENGTH))
    index = 1.0 + REFRACTIVITY
    expected = 1.0 - 1.0 / (index**2 * (1.0 - sine**2))
    np.testing.assert_allclose(found[small], expected, rtol=5e-6)
    beta = ak.flatten(rings.beta).to_numpy()[small]
    np.testing.assert_allclose(beta, np.sqrt(1.0 - expected), rtol=1e-7)
