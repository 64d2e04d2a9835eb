"""Efficiency, clones, fakes, resolution and pulls of TPC tracks over events."""

from collections import Counter
from dataclasses import dataclass, field
from typing import Any

import numpy as np
from numpy.typing import NDArray

from hltnode.processing.alice.detector_constants import KG_TO_CURVATURE
from hltnode.processing.alice.geometry.tpc_geometry import TpcGeometry
from hltnode.processing.alice.offline.validation.curves import AXES, PT_BINS, Curves
from hltnode.processing.alice.offline.validation.matching import (
    LEVELS,
    MATCH_LEVEL,
    MIN_PT,
    MIN_ROWS,
    Integers,
    Matches,
    Score,
    match_tracks,
    rows_of_particles,
    score,
)
from hltnode.processing.alice.offline.validation.v0_checker import V0Checker
from hltnode.protocol.alice.tpc_banks import N_ROWS, N_SLICES, TpcTruth

Floats = NDArray[np.float64]

PARAMETERS = ("y", "z", "sin_phi", "lambda", "kappa")
"""Y and Z in cm, sine of the angle to x, pz / pT, q / pT in c/GeV."""
MAX_STEP = 10.0
"""cm: a true state is followed to the first cluster of a track over at most this distance. Scattering in the gas is
below a tenth of the resolution there."""
MAX_PULL = 5.0
"""Larger pulls count as outside and not in mean and width."""
PURE_LEVEL = LEVELS[-1]
"""Match of the tracks whose clusters are nearly all those of one particle."""
SPECIES = {"pions": 211, "kaons": 321, "protons": 2212}
"""PDG number by the name of the table, in the order of the particles that the fit assumes."""
PULLS = ("all", "triggered", "pure", *SPECIES)
"""Tracks whose pulls are shown: all that are matched; those of particles of the triggered collision; of these, those
with a match of PURE_LEVEL; and those of each species. Particles of other collisions have another drift length than
their clusters show, so the assumed resolution is wrong for them."""


@dataclass(frozen=True, slots=True, kw_only=True)
class FoundTracks:
    """Tracks of one event.

    slice_number: i64[tracks]. n_clusters: i64[tracks]. clusters: i64[sum of n_clusters], numbers of the clusters in the
    event, track by track. x: f64[tracks], where the parameters are valid, in cm. parameters, sigmas: f64[tracks, 5],
    PARAMETERS and the square roots of their variances, in the frame of the slice. particle: i64[tracks], that of the
    fit as a place in SPECIES; None for tracks of slices, which are fitted as pions.
    """

    slice_number: Integers
    n_clusters: Integers
    clusters: Integers
    x: Floats
    parameters: Floats
    sigmas: Floats
    particle: Integers | None = None


@dataclass(slots=True)
class Counts:
    """Sums over events, by level: references and tracks, found references, fakes, clones."""

    findable: int = 0
    tracks: int = 0
    found: Counter[float] = field(default_factory=Counter)
    fakes: Counter[float] = field(default_factory=Counter)
    clones: Counter[float] = field(default_factory=Counter)

    def result(self) -> dict[str, Any]:
        """Numbers and fractions; None where there is nothing to divide by. The fractions are those of 70 %."""
        levels = {str(round(100 * level)): self._fractions(level) for level in LEVELS}
        return {
            "findable": self.findable,
            "tracks": self.tracks,
            **self._fractions(MATCH_LEVEL),
            "levels": levels,
        }

    def _fractions(self, level: float) -> dict[str, float | None]:
        return {
            "efficiency": self.found[level] / self.findable if self.findable else None,
            "fakes": self.fakes[level] / self.tracks if self.tracks else None,
            "clones": self.clones[level] / self.tracks if self.tracks else None,
        }


@dataclass(slots=True)
class _Comparison:
    """Residuals and pulls of the parameters of tracks, of each event. assumed: i64[species, species], pure tracks of
    each species by the particle of their fit."""

    residuals: list[Floats] = field(default_factory=list)
    pulls: dict[str, list[Floats]] = field(default_factory=lambda: {name: [] for name in PULLS})
    assumed: Integers = field(default_factory=lambda: np.zeros((len(SPECIES), len(SPECIES)), np.int64))


class TrackChecker:
    """Compares the tracks of slices with their truth; also merged tracks, where there are some.

    A reference of a slice is a particle with at least 30 rows with own clusters in this slice and pT above 0.15 GeV/c;
    a reference of merged tracks has these rows in all slices together. A track belongs to the particle with most of its
    clusters, and is a fake if this share is below the level. Of several tracks of a particle (and slice), all but one
    are clones. Fakes and clones are fractions of the tracks.
    """

    def __init__(self, geometry: TpcGeometry) -> None:
        self.geometry = geometry
        self.events = 0
        self.without_truth = 0
        self.of_slices = Counts()
        self.of_merged = Counts()
        self.has_merged = False
        self.v0s: V0Checker | None = None
        self._curves, self._curves_of_merged = Curves(), Curves()
        self._of_slices = _Comparison()
        self._of_merged = _Comparison()

    def add(
        self,
        truth: TpcTruth | None,
        slice_of_clusters: Integers,
        row_of_clusters: Integers,
        tracks: FoundTracks,
        merged: FoundTracks | None = None,
        v0s: NDArray[np.void] | None = None,
    ) -> None:
        """Count an event. merged: tracks of the whole TPC. v0s: pairs of them. Raises ValueError as match_tracks."""
        self.events += 1
        if truth is None:
            self.without_truth += 1
            return
        n_particles = len(truth.particles)
        rows = rows_of_particles(truth.of_clusters, slice_of_clusters * N_ROWS + row_of_clusters, n_particles)
        px, py, pz = truth.particles["momentum"].astype(np.float64).T
        pt = np.hypot(px, py)
        enough = pt > MIN_PT
        particle, of_slice = np.nonzero((rows >= MIN_ROWS) & enough[:, None])
        references = particle * N_SLICES + of_slice
        matches = match_tracks(tracks.n_clusters, tracks.clusters, truth.of_clusters)
        place = matches.particle * N_SLICES + tracks.slice_number
        score_of_slices = _count(self.of_slices, matches, place, references)
        clusters_of_slice = np.bincount(slice_of_clusters, minlength=N_SLICES)
        with np.errstate(divide="ignore", invalid="ignore"):
            eta = np.arcsinh(pz / pt)
        self._curves.add(
            (pt[particle], eta[particle], clusters_of_slice[of_slice].astype(np.float64)),
            (*_pt_and_eta(tracks), clusters_of_slice[tracks.slice_number].astype(np.float64)),
            score_of_slices,
        )
        self._compare_parameters(truth, tracks, matches, self._of_slices)
        if merged is not None:
            self.has_merged = True
            whole = np.flatnonzero((rows.sum(1) >= MIN_ROWS) & enough)
            of_merged = match_tracks(merged.n_clusters, merged.clusters, truth.of_clusters)
            score_of_merged = _count(self.of_merged, of_merged, of_merged.particle, whole)
            mean = len(slice_of_clusters) / N_SLICES
            self._curves_of_merged.add(
                (pt[whole], eta[whole], np.full(len(whole), mean)),
                (*_pt_and_eta(merged), np.full(len(merged.x), mean)),
                score_of_merged,
            )
            self._compare_parameters(truth, merged, of_merged, self._of_merged)
            if v0s is not None:
                self.v0s = self.v0s or V0Checker()
                self.v0s.add(truth, whole, of_merged, v0s)

    def _compare_parameters(
        self, truth: TpcTruth, tracks: FoundTracks, matches: Matches, comparison: _Comparison
    ) -> None:
        states = truth.states
        if not len(states) or not len(tracks.x):
            return
        key = states["particle"].astype(np.int64) * N_SLICES + states["slice"]
        order = np.argsort(key, kind="stable")
        wanted = matches.particle * N_SLICES + tracks.slice_number
        at = order[np.minimum(np.searchsorted(key[order], wanted), len(key) - 1)]
        dx = tracks.x - self.geometry.row_x[states["row"][at]]
        usable = (matches.particle >= 0) & (matches.fraction >= MATCH_LEVEL) & (key[at] == wanted)
        usable &= (dx > -1e-3) & (dx <= MAX_STEP)
        true, valid = followed(states[at[usable]], dx[usable], self.geometry)
        residuals = tracks.parameters[usable][valid] - true[valid]
        comparison.residuals.append(residuals)
        pulls = residuals / tracks.sigmas[usable][valid]
        true_particles = truth.particles[matches.particle[usable][valid]]
        is_triggered = true_particles["collision"] == 0
        is_pure = is_triggered & (matches.fraction[usable][valid] >= PURE_LEVEL)
        of_species = [is_pure & (np.abs(true_particles["pdg"]) == pdg) for pdg in SPECIES.values()]
        for name, chosen in zip(PULLS, (np.ones(len(pulls), bool), is_triggered, is_pure, *of_species), strict=True):
            comparison.pulls[name].append(pulls[chosen])
        if tracks.particle is not None:
            assumed = tracks.particle[usable][valid]
            for counts, chosen in zip(comparison.assumed, of_species, strict=True):
                counts += np.bincount(assumed[chosen], minlength=len(SPECIES))

    def result(self) -> dict[str, Any]:
        """The JSON object. merged: None without merged tracks. pulls and resolution are those of merged tracks, or of
        tracks of slices if there are none; pulls_of_slices are those of tracks of slices. assumed: for each species,
        the tracks of its pulls by the particle that their fit assumes; None without merged tracks. of_pt and the other
        keys of AXES: curves of tracks of slices; merged_of_pt and so on: of merged tracks, None without them."""
        compared = self._of_merged if self.has_merged else self._of_slices
        return {
            "events": self.events,
            "without_truth": self.without_truth,
            "slice": self.of_slices.result(),
            "merged": self.of_merged.result() if self.has_merged else None,
            "v0s": None if self.v0s is None else self.v0s.result(),
            "pulls": _moments(compared.pulls["all"], MAX_PULL),
            **{f"pulls_{name}": _moments(compared.pulls[name], MAX_PULL) for name in PULLS[1:]},
            "pulls_of_slices": _moments(self._of_slices.pulls["all"], MAX_PULL),
            "assumed": {
                name: dict(zip(SPECIES, counts, strict=True))
                for name, counts in zip(SPECIES, self._of_merged.assumed.tolist(), strict=True)
            }
            if self.has_merged
            else None,
            "resolution": _moments(compared.residuals, None),
            **{key: self._curves.result(key) for key in AXES},
            **{f"merged_{key}": self._curves_of_merged.result(key) if self.has_merged else None for key in AXES},
        }


def followed(states: NDArray[np.void], dx: Floats, geometry: TpcGeometry) -> tuple[Floats, NDArray[np.bool_]]:
    """Move true states by dx along x, on circles: PARAMETERS f64[states, 5], bool[states] (False: x is not reached)."""
    y, z, sine, slope, kappa = (states[name].astype(np.float64) for name in ("y", "z", "sin_phi", "lambda", "kappa"))
    bz = geometry.field.bz(geometry.row_x[states["row"]] ** 2 + y**2, z)
    end = sine - KG_TO_CURVATURE * bz * kappa * dx
    valid = np.abs(end) < 1.0
    inside = np.clip(end, -0.999, 0.999)
    tangent = (sine + inside) / (np.sqrt(1.0 - sine**2) + np.sqrt(1.0 - inside**2))
    # The chord is as long as the arc within 1e-4 for MAX_STEP and pT above 0.15 GeV/c.
    return np.column_stack([y + dx * tangent, z + slope * dx * np.hypot(1.0, tangent), end, slope, kappa]), valid


def _pt_and_eta(tracks: FoundTracks) -> tuple[Floats, Floats]:
    """In GeV/c; a straight track has the largest momentum of the curves."""
    slope, charge_over_pt = (tracks.parameters[:, PARAMETERS.index(name)] for name in ("lambda", "kappa"))
    with np.errstate(divide="ignore"):
        return np.minimum(1.0 / np.abs(charge_over_pt), PT_BINS[-1]), np.arcsinh(slope)


def _count(counts: Counts, matches: Matches, place: Integers, references: Integers) -> Score:
    """Count at each level; returns the score at that of the results."""
    counts.findable += len(references)
    counts.tracks += len(place)
    scores = {level: score(matches, place, references, level) for level in LEVELS}
    for level, of_level in scores.items():
        counts.found[level] += int(of_level.found.sum())
        counts.fakes[level] += int(of_level.fakes.sum())
        counts.clones[level] += int(of_level.clones.sum())
    return scores[MATCH_LEVEL]


def _moments(parts: list[Floats], limit: float | None) -> dict[str, dict[str, float | int] | None]:
    """Mean and width of each parameter; with a limit, those of values within it, and the fraction outside. Without one,
    the median, and half the range of the central 68.3 %, which `width_68` is with a limit, of all values."""
    values = np.concatenate([np.empty((0, len(PARAMETERS))), *parts])
    result: dict[str, dict[str, float | int] | None] = {}
    for name, column in zip(PARAMETERS, values.T, strict=True):
        inside = column if limit is None else column[np.abs(column) <= limit]
        if len(inside) < 2:
            result[name] = None
            continue
        low, middle, high = np.percentile(column, [15.87, 50.0, 84.13])
        robust = {"mean": float(middle), "width": float(high - low) / 2.0}
        moments = {"mean": float(inside.mean()), "width": float(inside.std())}
        with_limit = {**moments, "width_68": robust["width"], "outside": 1.0 - len(inside) / len(column)}
        result[name] = {**(robust if limit is None else with_limit), "tracks": len(column)}
    return result
