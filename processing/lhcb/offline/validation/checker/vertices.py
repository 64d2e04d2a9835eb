"""Which Monte Carlo collision a reconstructed primary vertex belongs to (docs/physics/validation.md)."""

from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import Any

import numpy as np
from numpy.typing import NDArray

from hltnode.processing.lhcb.offline.validation.checker.binning import PARTICLE_BINNINGS
from hltnode.processing.offline.arrays import Float64Array
from hltnode.processing.offline.checks.binning import Binning
from hltnode.processing.offline.checks.counts import BinnedCounts, ratio
from hltnode.processing.offline.checks.residuals import ResidualHistogram
from hltnode.protocol.lhcb.truth import McVertex

# A collision counts as reconstructible with this many charged particles that cross the VELO.
MIN_TRACKS = 4
# A vertex belongs to the nearest collision within this many of its own standard deviations in z.
MAX_SIGMA = 5.0
# A collision is isolated if no other one of its event is nearer than this (mm).
ISOLATION = 10.0

_N_TRACKS = Binning("tracks of the collision", "", np.array([4, 8, 12, 16, 20, 25, 30, 40, 50, 65, 80, 100, 150.0]))
_AXES = "xyz"

PV_BINNINGS: dict[str, Binning] = {
    "n_tracks": _N_TRACKS,
    "z": Binning("z of the collision", "mm", np.linspace(-200, 200, 21)),
    "n_pvs": PARTICLE_BINNINGS["n_pvs"],
}
"""Variables of the plots of vertex efficiencies."""


def vertex_residuals(wider: float = 1.0) -> dict[str, ResidualHistogram]:
    """Residuals and pulls of vertices; wider: factor of the range of residuals."""
    limits = {"x": 100.0 * wider, "y": 100.0 * wider, "z": 500.0 * wider}
    found = {f"d{a}": ResidualHistogram(f"PV $\\Delta {a}$", "µm", limits[a], _N_TRACKS) for a in _AXES}
    pulls = {f"pull_{a}": ResidualHistogram(f"pull of PV {a}", "", 5.0, _N_TRACKS) for a in _AXES}
    return found | pulls


def _binned() -> dict[str, dict[str, BinnedCounts]]:
    return {
        kind: {name: BinnedCounts(binning) for name, binning in PV_BINNINGS.items()} for kind in ("isolated", "close")
    }


@dataclass(slots=True)
class FoundCounts:
    """Collisions of a kind, and those of them with at least one vertex."""

    reconstructible: int = 0
    reconstructed: int = 0

    def result(self) -> dict[str, Any]:
        """The JSON object."""
        return {
            "reconstructible": self.reconstructible,
            "reconstructed": self.reconstructed,
            "efficiency": ratio(self.reconstructed, self.reconstructible),
        }


@dataclass(slots=True)
class VertexCounts:
    """Counts of primary vertices, summed over events.

    `matched_small` counts collisions of fewer than four tracks with a vertex: Allen adds them to the numerator of its
    efficiency, which can lift it above 1; here they are counted separately. `clones` are further vertices of a
    collision.
    """

    all: FoundCounts = field(default_factory=FoundCounts)
    isolated: FoundCounts = field(default_factory=FoundCounts)
    close: FoundCounts = field(default_factory=FoundCounts)
    vertices: int = 0
    false: int = 0
    clones: int = 0
    matched: int = 0
    matched_small: int = 0
    residuals: dict[str, ResidualHistogram] = field(default_factory=vertex_residuals)
    binned: dict[str, dict[str, BinnedCounts]] = field(default_factory=_binned)

    def add_event(self, pvs: NDArray[np.float32], collisions: Sequence[McVertex]) -> None:
        """Count an event: pvs f32[n, 6] = x, y, z (mm) and their variances (mm²); all collisions are used."""
        vertices: Float64Array = np.asarray(pvs, dtype=np.float64)
        place = np.array([(c.x, c.y, c.z) for c in collisions], dtype=np.float64).reshape(-1, 3)
        n_tracks = np.array([c.n_tracks for c in collisions], dtype=np.int64)
        reconstructible = n_tracks >= MIN_TRACKS
        found = np.zeros(len(collisions), dtype=bool)
        self.vertices += len(pvs)
        if len(collisions) and len(pvs):
            nearest, matched = match_vertices(vertices, place)
            found[nearest[matched]] = True
            self.matched += int(matched.sum())
            self._add_residuals(vertices[matched], place[nearest[matched]], n_tracks[nearest[matched]])
            self.false += int((~matched).sum())
            self.clones += int(matched.sum() - found.sum())
        else:
            self.false += len(pvs)
        self.matched_small += int((found & ~reconstructible).sum())
        isolated = _is_isolated(place)
        kinds = ((self.all, reconstructible), (self.isolated, reconstructible & isolated))
        for counts, chosen in (*kinds, (self.close, reconstructible & ~isolated)):
            counts.reconstructible += int(chosen.sum())
            counts.reconstructed += int((chosen & found).sum())
        values = {"n_tracks": n_tracks, "z": place[:, 2], "n_pvs": np.full(len(collisions), reconstructible.sum())}
        for kind, chosen in (("isolated", reconstructible & isolated), ("close", reconstructible & ~isolated)):
            for name, binned in self.binned[kind].items():
                bins = binned.binning.bins_of(values[name])
                binned.add("reconstructible", bins[chosen])
                binned.add("reconstructed", bins[chosen & found])

    def _add_residuals(self, pvs: Float64Array, place: Float64Array, n_tracks: NDArray[np.int64]) -> None:
        for i, axis in enumerate(_AXES):
            residual = pvs[:, i] - place[:, i]
            self.residuals[f"d{axis}"].add(residual * 1000, n_tracks.astype(np.float64))
            self.residuals[f"pull_{axis}"].add(residual / np.sqrt(pvs[:, 3 + i]), n_tracks.astype(np.float64))

    def result(self) -> dict[str, Any]:
        """The JSON object "pv", whose keys are a stable contract."""
        return {**self.all.result(), "false_rate": ratio(self.false, self.vertices)}

    def details(self) -> dict[str, Any]:
        """The JSON object "pv_details": by isolation, and as Allen counts."""
        return {
            "isolated": self.isolated.result(),
            "close": self.close.result(),
            "clones": self.clones,
            "matched_with_fewer_tracks": self.matched_small,
            "efficiency_as_allen_counts": ratio(self.all.reconstructed + self.matched_small, self.all.reconstructible),
        }

    def histograms(self) -> dict[str, Any]:
        """The JSON object of the binned sums, isolated and close collisions separately."""
        return {
            kind: {name: binned.result() for name, binned in variables.items()}
            for kind, variables in self.binned.items()
        }


def match_vertices(pvs: Float64Array, place: Float64Array) -> tuple[NDArray[np.int64], NDArray[np.bool_]]:
    """The collision (f64[n, 3], mm) nearest in z to each vertex (f64[m, 6]), and whether the vertex belongs to it."""
    if not len(place):
        return np.zeros(len(pvs), np.int64), np.zeros(len(pvs), bool)
    distance = np.abs(pvs[:, 2, None] - place[:, 2])
    return distance.argmin(axis=1), distance.min(axis=1) < MAX_SIGMA * np.sqrt(pvs[:, 5])


def _is_isolated(place: Float64Array) -> NDArray[np.bool_]:
    distance = np.linalg.norm(place[:, None] - place[None, :], axis=2)
    np.fill_diagonal(distance, np.inf)
    isolated: NDArray[np.bool_] = distance.min(axis=1, initial=np.inf) > ISOLATION
    return isolated
