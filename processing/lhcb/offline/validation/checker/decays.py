"""Vertices of two tracks against decays in truth: efficiency, resolution, pulls and mass peaks, by kind of decay.

A decay to find has two daughters, reconstructible as long tracks (or as another type of track) in 2 < eta < 5. A vertex
belongs to it if its two tracks match the daughters.
"""

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from typing import Any

import numpy as np
from numpy.typing import NDArray

from hltnode.processing.lhcb.offline.validation.checker.matching import TrackMatches
from hltnode.processing.lhcb.offline.validation.checker.particles import ID_BITS, ParticleTable
from hltnode.processing.lhcb.offline.validation.checker.tracks import TrackTable
from hltnode.processing.lhcb.secondary_vertices.collections import VertexKind
from hltnode.processing.offline.arrays import Float64Array, Int64Array, Mask
from hltnode.processing.offline.checks.binning import CENTRAL_68, Binning
from hltnode.processing.offline.checks.counts import ratio
from hltnode.processing.offline.checks.mass_peak import MIN_ENTRIES, MassPeak, fit_peak
from hltnode.processing.offline.checks.residuals import ResidualHistogram

_N_BINS = 240


@dataclass(frozen=True, slots=True)
class DecayKind:
    """A decay to two charged particles: kinds of mother and daughters (PDG numbers, without sign), the bit of `kind` of
    the vertices in which it is looked for, true mass and range of the histogram (MeV, PDG)."""

    title: str
    mother: int
    daughters: tuple[int, int]
    found_as: int
    mass: float
    low: float
    high: float


DECAYS = {
    "ks": DecayKind(r"$K^0_S \to \pi^+ \pi^-$", 310, (211, 211), VertexKind.VERTEX_KS, 497.61, 437.6, 557.6),
    "lambda": DecayKind(
        r"$\Lambda \to p \pi^-$", 3122, (211, 2212), VertexKind.VERTEX_LAMBDA, 1115.683, 1091.7, 1139.7
    ),
    "phi": DecayKind(r"$\phi \to K^+ K^-$", 333, (321, 321), VertexKind.VERTEX_DISPLACED, 1019.46, 989.5, 1061.5),
    "jpsi": DecayKind(r"$J/\psi \to \mu^+ \mu^-$", 443, (13, 13), VertexKind.VERTEX_DIMUON, 3096.9, 2856.9, 3336.9),
}
"""Kinds of decays by their names in JSON."""

# Resolutions are given against the place of the decay along the beam.
_Z = Binning("z of the decay", "mm", np.linspace(-200, 700, 10))
_AXES = "xyz"


def _residuals() -> dict[str, ResidualHistogram]:
    limits = {"x": 1.0, "y": 1.0, "z": 20.0}
    found = {f"d{a}": ResidualHistogram(f"decay vertex $\\Delta {a}$", "mm", limits[a], _Z) for a in _AXES}
    return found | {f"pull_{a}": ResidualHistogram(f"pull of decay vertex {a}", "", 5.0, _Z) for a in _AXES}


@dataclass(frozen=True, slots=True, eq=False)
class VertexTable:
    """Vertices of two tracks of a batch, one row each.

    tracks i64[n, 2]: rows in the table of tracks; place, variance f64[n, 3]: mm, mm², NaN for vertices without errors;
    kind: bits of VertexKind or of DownstreamV0Kind; masses: MeV, f64[n] by name of the decay.
    """

    tracks: Int64Array
    place: Float64Array
    variance: Float64Array
    kind: Int64Array
    masses: dict[str, Float64Array]

    def of_kept_tracks(self, kept: Mask) -> "VertexTable":
        """The vertices whose tracks are kept (bool[tracks]); tracks are numbered anew."""
        row = np.where(kept, np.cumsum(kept) - 1, -1)[self.tracks]
        chosen = (row >= 0).all(axis=1)
        masses = {name: values[chosen] for name, values in self.masses.items()}
        return VertexTable(row[chosen], self.place[chosen], self.variance[chosen], self.kind[chosen], masses)


@dataclass(slots=True)
class DecayCounts:
    """Sums of one kind of decay. `with_tracks`: both daughters have long tracks; `found`: these make a vertex that is a
    candidate of the kind; `with_ghost`: candidates with a track that matches no particle. `all`, `true`: masses of all
    candidates of opposite charge, and of those that are the decay.
    """

    kind: DecayKind
    reconstructible: int = 0
    with_tracks: int = 0
    found: int = 0
    candidates: int = 0
    with_ghost: int = 0
    residuals: dict[str, ResidualHistogram] = field(default_factory=_residuals)
    all: NDArray[np.float64] = field(default_factory=lambda: np.zeros(_N_BINS))
    true: NDArray[np.float64] = field(default_factory=lambda: np.zeros(_N_BINS))

    @property
    def edges(self) -> Float64Array:
        return np.linspace(self.kind.low, self.kind.high, _N_BINS + 1)

    def peak(self) -> MassPeak | None:
        """The peak of all candidates; true decays give the start of the fit. None for too few of them."""
        n = self.true.sum()
        if n < MIN_ENTRIES:
            return None
        cumulative = np.concatenate([[0.0], np.cumsum(self.true)]) / n
        low, middle, high = np.interp([(1 - CENTRAL_68) / 2, 0.5, (1 + CENTRAL_68) / 2], cumulative, self.edges)
        return fit_peak(self.all, self.edges, float(middle), float(high - low) / 2)

    def result(self) -> dict[str, Any]:
        """The JSON object of the kind."""
        return {
            "reconstructible": self.reconstructible,
            "with_tracks": self.with_tracks,
            "reconstructed": self.found,
            "efficiency": ratio(self.found, self.reconstructible),
            "efficiency_with_tracks": ratio(self.found, self.with_tracks),
            "candidates": self.candidates,
            "with_ghost": self.with_ghost,
            "resolution": {
                name: {"unit": residual.unit, **residual.result()["summary"]}
                for name, residual in self.residuals.items()
            },
        }

    def mass(self) -> dict[str, Any]:
        """The JSON object of the mass peak; None for numbers of a fit that failed."""
        peak = self.peak()
        fitted = ("mass", "mass_error", "width", "width_error", "signal", "background")
        names = ("mass", "mass_error", "core_width", "core_width_error", "signal", "background")
        return {
            "title": self.kind.title,
            "true_mass": self.kind.mass,
            **{name: None if peak is None else getattr(peak, of) for name, of in zip(names, fitted, strict=True)},
            "edges": self.edges.tolist(),
            "all": self.all.astype(int).tolist(),
            "true": self.true.astype(int).tolist(),
            "curve": None if peak is None else _drawn(peak, self.edges[1] - self.edges[0]),
        }


def _drawn(peak: MassPeak, bin_width: float) -> dict[str, list[float]]:
    """The fitted curve in entries per bin."""
    mass = np.linspace(peak.low, peak.high, 101)
    return {"mass": mass.tolist(), "entries": (peak.density(mass) * bin_width).tolist()}


Belongs = Callable[[ParticleTable], Mask]


def _long(particles: ParticleTable) -> Mask:
    return particles.is_long & particles.in_acceptance


class DecayChecks:
    """Counts of all kinds of decays, summed over events.

    kinds: by name in JSON. daughters: the particles to find. residuals: makes the histograms of a kind.
    """

    def __init__(
        self,
        kinds: Mapping[str, DecayKind] = DECAYS,
        daughters: Belongs = _long,
        residuals: Callable[[], dict[str, ResidualHistogram]] = _residuals,
    ) -> None:
        self.counts = {name: DecayCounts(kind, residuals=residuals()) for name, kind in kinds.items()}
        self._daughters = daughters

    def add(
        self,
        vertices: VertexTable,
        tracks: TrackTable,
        particles: ParticleTable,
        matches: TrackMatches,
        has_origins: bool,
    ) -> None:
        """Count a batch; tracks: those of the vertices; has_origins: the truth has the origins of particles."""
        tracked = np.zeros(len(particles), dtype=bool)
        tracked[matches.particle] = True
        # A track that matches several particles counts for the first.
        particle_of = np.full(len(tracks), -1)
        particle_of[matches.track[::-1]] = matches.particle[::-1]
        of_vertex = np.sort(particle_of[vertices.tracks], axis=1)
        n = max(len(particles), 1)
        keys = np.where((of_vertex >= 0).all(axis=1), of_vertex[:, 0] * n + of_vertex[:, 1], -1)
        is_neutral = vertices.kind & VertexKind.VERTEX_SAME_SIGN == 0
        wanted = self._daughters(particles)
        for name, counts in self.counts.items():
            kind = counts.kind
            daughters = decays_of(particles, kind, wanted)
            decay = daughters[:, 0] * n + daughters[:, 1]
            candidate = (vertices.kind & kind.found_as != 0) & is_neutral
            is_true = candidate & np.isin(keys, decay)
            counts.reconstructible += len(decay)
            counts.with_tracks += int(tracked[daughters].all(axis=1).sum())
            counts.found += len(np.unique(keys[is_true]))
            counts.candidates += int(candidate.sum())
            counts.with_ghost += int((candidate & (keys < 0)).sum())
            masses = vertices.masses[name]
            counts.all += np.histogram(masses[candidate], counts.edges)[0]
            counts.true += np.histogram(masses[is_true], counts.edges)[0]
            if has_origins:
                _add_residuals(counts.residuals, vertices, is_true, particles.origin[of_vertex[is_true, 0]])

    def result(self) -> dict[str, Any]:
        """The JSON object "secondary": by kind of decay."""
        return {name: counts.result() for name, counts in self.counts.items()}

    def masses(self) -> dict[str, Any]:
        """The JSON object "masses": by kind of decay."""
        return {name: counts.mass() for name, counts in self.counts.items()}


def decays_of(particles: ParticleTable, kind: DecayKind, wanted: Mask) -> Int64Array:
    """The daughters of the decays to find, i64[n, 2]: rows of particles, the smaller first. wanted: particles that may
    be daughters."""
    pid = np.abs(particles.pid)
    of_kind = np.isin(pid, kind.daughters) & (np.abs(particles.mother_pid) == kind.mother)
    row = np.flatnonzero(of_kind & wanted)
    mother = particles.event[row] << ID_BITS | particles.mother_key[row]
    order = np.argsort(mother, kind="stable")
    row, mother = row[order], mother[order]
    _, first, count = np.unique(mother, return_index=True, return_counts=True)
    first = first[count == len(kind.daughters)]
    pairs = np.stack([row[first], row[first + 1]], axis=1)
    fits = (np.sort(pid[pairs], axis=1) == np.sort(kind.daughters)).all(axis=1)
    fits &= np.prod(np.sign(particles.pid[pairs]), axis=1) < 0
    found: Int64Array = pairs[fits]
    return found


def _add_residuals(
    residuals: dict[str, ResidualHistogram], vertices: VertexTable, chosen: Mask, origin: Float64Array
) -> None:
    for i, axis in enumerate(_AXES):
        residual = vertices.place[chosen, i] - origin[:, i]
        residuals[f"d{axis}"].add(residual, origin[:, 2])
        if (pull := residuals.get(f"pull_{axis}")) is not None:
            pull.add(residual / np.sqrt(vertices.variance[chosen, i]), origin[:, 2])
