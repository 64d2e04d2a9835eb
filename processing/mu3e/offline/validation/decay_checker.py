"""Which decays mu -> eee have a vertex, how well tracks and vertices are measured, and how much time is kept."""

from dataclasses import dataclass, field
from typing import Any

import numpy as np
from numpy.typing import NDArray

from hltnode.protocol.mu3e.hit_banks import DecayKind

NO_PIXEL = 0xFFFF_FFFF
ALL_LAYERS = 0b1111
MATCHED_PIXELS = 3
"""A track belongs to the particle that at least this number of its pixels of layers 0 to 3 is from."""
BORDER_NS = 30
"""Decays that lie nearer to an edge of a time slice are left out: their first hit may belong to its neighbour."""
SHIFT = 150
"""ns by which true decays are shifted to count windows that meet them by accident."""
RECURLING = "recurling"
HIT_CLASSES = ("3 hits", "4 hits", RECURLING)
_WIDTH_ERROR = 0.96
"""The half-width of n normally distributed values has this relative error over sqrt(n)."""
_LIMIT = 2.303
"""Upper limit of the mean at 90 % confidence where nothing is seen."""


@dataclass(frozen=True, slots=True)
class SliceContent:
    """Truth and results of a time slice, margins included.

    length: ns of a sub-slice. is_margin: bool[sub-slices]. hits: i64[hits, 3], sub-slice, pixel (sensor << 16 |
    column << 8 | row), id of the particle or NO_PIXEL. particles, decays: TRUE_PARTICLE and TRUE_DECAY records with
    their sub-slices in particle_slice and decay_slice. Of tracks: pixels, i64[tracks, 4] or NO_PIXEL; recurls,
    i64[tracks], the recurling pixel or NO_PIXEL; momenta, f64[tracks] in MeV/c; charges, i64[tracks]; own,
    bool[tracks], whether they begin in their sub-slice track_slice, i64[tracks]. vertices: f64[vertices, 3] in mm;
    vertex_tracks: i64[vertices, 3], rows of tracks. windows: i64[windows, 2], start and end in ns since the start of
    the slice.
    """

    length: int
    is_margin: NDArray[np.bool_]
    hits: NDArray[np.int64]
    particles: NDArray[np.void]
    particle_slice: NDArray[np.int64]
    decays: NDArray[np.void]
    decay_slice: NDArray[np.int64]
    pixels: NDArray[np.int64]
    recurls: NDArray[np.int64]
    momenta: NDArray[np.float64]
    charges: NDArray[np.int64]
    own: NDArray[np.bool_]
    track_slice: NDArray[np.int64]
    vertices: NDArray[np.float64]
    vertex_tracks: NDArray[np.int64]
    windows: NDArray[np.int64]


def particles_of_pixels(
    hits: NDArray[np.int64], track_slice: NDArray[np.int64], pixels: NDArray[np.int64]
) -> NDArray[np.int64]:
    """The id of the particle of each pixel i64[tracks, k]; -1 for no pixel, and for noise.

    hits: as in SliceContent. A pixel is looked up in the sub-slice of the track, then in that behind it, then in that
    before it.
    """
    keys = hits[:, 0] << 32 | hits[:, 1]
    order = np.argsort(keys, kind="stable")
    keys, ids = keys[order], hits[order, 2]
    found = np.full(pixels.shape, -1, np.int64)
    for shift in (0, 1, -1) if len(keys) else ():
        wanted = (track_slice[:, None] + shift) << 32 | pixels
        place = np.minimum(np.searchsorted(keys, wanted), len(keys) - 1)
        hit = (found < 0) & (keys[place] == wanted) & (pixels != NO_PIXEL)
        found[hit] = ids[place][hit]
    found[found == NO_PIXEL] = -1
    return found


def particles_of_tracks(
    hits: NDArray[np.int64], track_slice: NDArray[np.int64], pixels: NDArray[np.int64]
) -> NDArray[np.int64]:
    """The id of the particle that most pixels of each track are from, i64[tracks]; -1 for fewer than MATCHED_PIXELS."""
    found = particles_of_pixels(hits, track_slice, pixels)
    same = (found[:, :, None] == found[:, None, :]).sum(2) * (found >= 0)
    best = same.argmax(1) if len(found) else np.empty(0, np.int64)
    rows = np.arange(len(found))
    matched: NDArray[np.int64] = np.where(same[rows, best] >= MATCHED_PIXELS, found[rows, best], -1)
    return matched


def covered(windows: NDArray[np.int64]) -> int:
    """ns that lie in at least one window."""
    total, end = 0, -(1 << 62)
    for start, stop in windows[np.argsort(windows[:, 0], kind="stable")].tolist():
        total += max(0, stop - max(start, end))
        end = max(end, stop)
    return total


@dataclass(slots=True)
class DecayChecker:
    """Counts over time slices."""

    slices: int = 0
    sub_slices: int = 0
    live_ns: int = 0
    true_decays: dict[str, int] = field(default_factory=lambda: {kind.name.lower(): 0 for kind in DecayKind})
    accepted: int = 0
    found: int = 0
    kept: int = 0
    accidental: int = 0
    particles: int = 0
    particles_found: int = 0
    tracks: int = 0
    tracks_matched: int = 0
    windows: int = 0
    background_windows: int = 0
    background_ns: int = 0
    residuals: dict[str, list[NDArray[np.float64]]] = field(default_factory=lambda: {name: [] for name in HIT_CLASSES})
    vertex_residuals: list[NDArray[np.float64]] = field(default_factory=list)
    signal_residuals: list[NDArray[np.float64]] = field(default_factory=list)
    backwards: int = 0
    recurls: int = 0
    recurls_right: int = 0

    def add(self, content: SliceContent) -> None:
        """Count a slice."""
        core = np.flatnonzero(~content.is_margin)
        if not len(core):
            return
        self.slices += 1
        self.sub_slices += len(core)
        self.live_ns += len(core) * content.length
        inside = (core[0] * content.length + BORDER_NS, (core[-1] + 1) * content.length - BORDER_NS)
        of_tracks = particles_of_tracks(content.hits, content.track_slice, content.pixels)
        self._add_tracks(content, of_tracks, inside)
        self._add_decays(content, of_tracks, inside)

    def _add_tracks(self, content: SliceContent, of_tracks: NDArray[np.int64], inside: tuple[int, int]) -> None:
        particles = content.particles
        times = content.particle_slice * content.length + particles["time"]
        wanted = (particles["layers"] == ALL_LAYERS) & (times >= inside[0]) & (times < inside[1])
        self.particles += int(wanted.sum())
        # Tracks of the sub-slice behind, which a vertex may need, are listed there again.
        of_tracks = of_tracks[content.own]
        pixels, recurls = content.pixels[content.own], content.recurls[content.own]
        momenta = content.momenta[content.own]
        self.particles_found += int(np.isin(particles["id"][wanted], of_tracks[of_tracks >= 0]).sum())
        self.tracks += len(of_tracks)
        self.tracks_matched += int((of_tracks >= 0).sum())
        row = {int(number): i for i, number in enumerate(particles["id"].tolist())}
        true = np.array([row.get(number, -1) for number in of_tracks.tolist()], np.int64)
        known = true >= 0
        forwards = known.copy()
        forwards[known] = content.charges[content.own][known] == particles["charge"][true[known]]
        self.backwards += int((known & ~forwards).sum())
        true, of_tracks, pixels, recurls, track_slice = (
            each[forwards] for each in (true, of_tracks, pixels, recurls, content.track_slice[content.own])
        )
        residual = momenta[forwards] - np.linalg.norm(particles["momentum"][true].astype(np.float64), axis=1)
        long = (pixels != NO_PIXEL).sum(1) > MATCHED_PIXELS
        has_recurl = recurls != NO_PIXEL
        of_recurls = particles_of_pixels(content.hits, track_slice, recurls[:, None])[:, 0]
        self.recurls += int(has_recurl.sum())
        self.recurls_right += int((has_recurl & (of_recurls == of_tracks)).sum())
        for name, mask in zip(HIT_CLASSES, (~long & ~has_recurl, long & ~has_recurl, has_recurl), strict=True):
            self.residuals[name].append(residual[mask])
        signal = content.decays["id"][content.decays["kind"] == DecayKind.SIGNAL]
        self.signal_residuals.append(residual[has_recurl & np.isin(particles["decay"][true], signal)])

    def _add_decays(self, content: SliceContent, of_tracks: NDArray[np.int64], inside: tuple[int, int]) -> None:
        decays, particles = content.decays, content.particles
        times = content.decay_slice * content.length + decays["time"].astype(np.float64)
        live = (times >= inside[0]) & (times < inside[1])
        for kind in DecayKind:
            self.true_decays[kind.name.lower()] += int((live & (decays["kind"] == kind)).sum())
        full = particles["layers"] == ALL_LAYERS
        signal = decays["kind"] == DecayKind.SIGNAL
        numbers = decays["id"].astype(np.int64)
        n_full = np.array([int(full[particles["decay"] == number].sum()) for number in numbers[signal].tolist()], int)
        accepted = signal & live
        accepted[signal] &= n_full == 3
        decay_of = dict(zip(particles["id"].tolist(), particles["decay"].tolist(), strict=True))
        place_of = {int(numbers[i]): decays["vertex"][i] for i in np.flatnonzero(signal).tolist()}
        found: set[int] = set()
        for place, rows in zip(content.vertices, content.vertex_tracks.tolist(), strict=True):
            ids = {int(of_tracks[row]) for row in rows}
            of = {decay_of.get(each, -1) for each in ids}
            if len(ids) == 3 and len(of) == 1 and -1 not in of:
                (number,) = of
                found.add(number)
                if number in place_of:
                    self.vertex_residuals.append(place - place_of[number])
        self.accepted += int(accepted.sum())
        self.found += len(found & set(numbers[accepted].tolist()))
        start, end = content.windows.T
        meets = (times[:, None] >= start) & (times[:, None] < end)
        shifted = (times[:, None] + SHIFT >= start) & (times[:, None] + SHIFT < end)
        self.kept += int(meets[accepted].any(1).sum())
        self.accidental += int(shifted[accepted].any(1).sum())
        background = ~meets[signal].any(0)
        self.windows += len(start)
        self.background_windows += int(background.sum())
        self.background_ns += covered(content.windows[background])

    def result(self) -> dict[str, Any]:
        """The JSON object. None where nothing was counted; errors are standard deviations."""
        by_hits = {
            name: {"tracks": sum(map(len, parts)), **_width("resolution", _joined(parts))}
            for name, parts in self.residuals.items()
        }
        places = np.concatenate([np.empty((0, 3)), *(part[None] for part in self.vertex_residuals)])
        return {
            "slices": self.slices,
            "sub_slices": self.sub_slices,
            "live_time_s": self.live_ns * 1e-9,
            "decays": dict(self.true_decays),
            "accepted": self.accepted,
            **_fraction("signal_efficiency", self.found, self.accepted),
            **_fraction("kept", self.kept, self.accepted),
            **_fraction("accidental", self.accidental, self.accepted),
            "windows": self.windows,
            "background_windows": self.background_windows,
            **self._reduction(),
            **_fraction("track_efficiency", self.particles_found, self.particles),
            **_fraction("ghost_fraction", self.tracks - self.tracks_matched, self.tracks),
            "tracks": self.tracks,
            **_fraction("backwards", self.backwards, self.tracks),
            **_width("momentum", _joined(self.signal_residuals)),
            "momentum_by_hits": by_hits,
            **_fraction("right_recurls", self.recurls_right, self.recurls),
            "vertices": len(places),
            **_width("vertex", 1000.0 * places.ravel()),
        }

    def _reduction(self) -> dict[str, float | None]:
        if not self.live_ns:
            return {"rate_reduction": None, "rate_reduction_error": None, "rate_reduction_limit": None}
        if not self.background_windows:
            # As if a window filled its sub-slice.
            limit = self.sub_slices / _LIMIT
            return {"rate_reduction": None, "rate_reduction_error": None, "rate_reduction_limit": limit}
        value = self.live_ns / self.background_ns
        error = value / self.background_windows**0.5
        return {"rate_reduction": value, "rate_reduction_error": error, "rate_reduction_limit": None}


def _joined(parts: list[NDArray[np.float64]]) -> NDArray[np.float64]:
    return np.concatenate([np.empty(0), *parts])


def _fraction(name: str, n: int, of: int) -> dict[str, float | None]:
    if not of:
        return {name: None, f"{name}_error": None}
    value = n / of
    return {name: value, f"{name}_error": (value * (1.0 - value) / of) ** 0.5}


def _width(name: str, residuals: NDArray[np.float64]) -> dict[str, float | None]:
    """Half-width that 68.27 % of residuals lie within around their median, and the median."""
    if len(residuals) < 2:
        return {name: None, f"{name}_error": None, f"{name}_bias": None}
    middle = float(np.median(residuals))
    width = float(np.quantile(np.abs(residuals - middle), 0.6827))
    return {name: width, f"{name}_error": _WIDTH_ERROR * width / len(residuals) ** 0.5, f"{name}_bias": middle}
