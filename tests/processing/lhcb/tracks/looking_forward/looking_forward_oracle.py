"""Looking Forward in NumPy from its description (docs/physics/looking-forward.md), step by step; all sums in double
precision. The fit and the bend in the magnet are those of the oracle of the forward search."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any

import numpy as np
from numpy.typing import NDArray

from tests.processing.lhcb.tracks.long.forward_hypothesis_oracle import (
    STEREO_LAYERS,
    X_LAYERS,
    Z_REFERENCE,
    Z_VELO,
    Bend,
    Candidate,
    Float64Array,
    Hypothesis,
    Line,
    OracleHits,
    Settings,
    UtPart,
    sigma_at,
    with_ut,
)
from tests.processing.lhcb.tracks.long.forward_oracle import ForwardSearch

PARTNER = {0: 1, 3: 2, 4: 5, 7: 6, 8: 9, 11: 10}
NO_HIT = 0xFFFF
TILE = 16


@dataclass(frozen=True, slots=True)
class Cuts:
    """The constants of Looking Forward; mm, MeV."""

    values: Mapping[str, float | int]
    of_forward: Settings = field(default_factory=Settings)

    def __getattr__(self, name: str) -> Any:
        return self.values[name]


@dataclass(slots=True)
class XSet:
    """Candidates of a triplet and of its extension: x layer -> hit."""

    hits: dict[int, int]
    spread: float


def half(x: Any) -> Any:
    """x in half precision."""
    return np.asarray(x, np.float32).astype(np.float16).astype(np.float64)


class TrackSearch:
    """The search for one VELO-UT track."""

    def __init__(self, record: np.void, hits: OracleHits, line: Line, ut: UtPart, cuts: Cuts) -> None:
        self.record, self.hits, self.line, self.ut, self.cuts = record, hits, line, ut, cuts
        self.layer_z = record["layer_z"].astype(np.float64)
        self.dx_dy = record["layer_dx_dy"].astype(np.float64)
        self.dz_dy = record["layer_dz_dy"].astype(np.float64)
        self.bend = Bend(record, line[2], line[3])
        self.where: Hypothesis = with_ut(self.bend, line, ut, cuts.of_forward)
        self.s = self.bend.polarity * ut.qop * 1e3
        self.kink = self.bend.kink(self.s)
        self.offset = self.where.offset + self.where.per_kink * self.kink
        self.half = int(self.y_at(Z_REFERENCE) + self.where.shift >= 0)
        self.z = {layer: self.z_in(layer) for layer in range(12)}

    def x_at(self, z: float) -> float:
        return self.line[0] + self.line[2] * (z - Z_VELO)

    def y_at(self, z: float) -> float:
        return self.line[1] + self.line[3] * (z - Z_VELO)

    def z_in(self, layer: int) -> float:
        z = float(self.layer_z[layer])
        return z + float(self.dz_dy[layer]) * (self.y_at(z) + self.where.shift)

    def stereo(self, layer: int, kink: float, offset: float) -> tuple[float, float]:
        """Expected place in a stereo layer, and the tolerance there."""
        z = float(self.layer_z[layer])
        y = self.y_at(z) + self.bend.y_change(z, kink) + self.where.shift
        z += self.dz_dy[layer] * y
        expected = self.x_at(z) + kink * self.bend.lever(z, kink) + offset - self.dx_dy[layer] * y
        window = 3.0 * sigma_at(self.where.sigma_shift, kink) * abs(self.dx_dy[layer]) + self.cuts.stereo_margin
        return float(expected), float(window)

    def nearest(self, layer: int, x: float, most: float) -> int | None:
        zone = self.hits.zone(layer, self.half)
        at = zone.start + int(np.searchsorted(self.hits.x[zone], x))
        near = [i for i in (at - 1, at) if zone.start <= i < zone.stop and abs(self.hits.x[i] - x) < most]
        return min(near, key=lambda i: abs(self.hits.x[i] - x)) if near else None

    def candidates(self) -> dict[int, list[int]]:
        """Steps 1 and 2: hits of each x layer, from the middle of the window outwards, with a partner."""
        chosen = {}
        self.expected = {}
        for layer in X_LAYERS:
            lever = self.bend.lever(self.z[layer], self.kink)
            expected = self.x_at(self.z[layer]) + self.offset + self.kink * lever
            self.expected[layer] = expected
            width = self.cuts.x_window + self.cuts.x_window_per_bend * abs(self.kink * lever)
            begin, end = self.hits.window(layer, self.half, expected - width, expected + width)
            middle = self.hits.window(layer, self.half, expected, expected)[0]
            order = [i for pair in range(128) for i in (middle + pair, middle - 1 - pair) if begin <= i < end]
            partner = PARTNER[layer]
            base, tolerance = self.stereo(partner, self.kink, self.offset)
            per_x = self.bend.lever(self.z[partner], self.kink) / lever
            chosen[layer] = [
                i
                for i in order
                if self.nearest(partner, base + (self.hits.x[i] - expected) * per_x, tolerance) is not None
            ][:32]
        return chosen

    def triplets(self, candidates: Mapping[int, list[int]]) -> list[tuple[float, int, dict[int, int]]]:
        """Steps 3 and 4: chi2, number of the middle hit and hits of the triplets with the smallest chi2."""
        found = []
        self.n_chi2 = 0
        x_of = {layer: self.hits.x[candidates[layer]] for layer in X_LAYERS}
        for k in range(4):
            layers = X_LAYERS[k : k + 3]
            x0, x1, x2 = (x_of[layer] for layer in layers)
            self.n_chi2 += len(x0) * len(x1) * len(x2)
            chi2 = self.chi2(x0, x1, x2, layers)
            for middle in range(len(x1)):
                best, pair = 3e38, None
                for row in range(0, len(x0), TILE):
                    for column in range(0, len(x2), TILE):
                        tile = chi2[row : row + TILE, column : column + TILE, middle]
                        i, j = np.unravel_index(int(tile.argmin()), tile.shape)
                        if tile[i, j] < best:
                            best, pair = float(tile[i, j]), (row + int(i), column + int(j))
                if pair is None or not best < self.cuts.max_triplet_chi2:
                    continue
                chosen = (candidates[layers[0]][pair[0]], candidates[layers[1]][middle], candidates[layers[2]][pair[1]])
                found.append((best, 32 * k + middle, dict(zip(layers, chosen, strict=True))))
        return sorted(found, key=lambda it: it[:2])[: self.cuts.n_triplets]

    def chi2(self, x0: Float64Array, x1: Float64Array, x2: Float64Array, layers: tuple[int, ...]) -> Float64Array:
        """Equation 6.1 for all triplets, [first][last][middle]."""
        z0, z1, z2 = (self.z[layer] for layer in layers)
        dz1, dz2 = z1 - z0, z2 - z0
        bend = self.cuts.triplet_curvature * self.s
        if self.cuts.tensor_core_form == 0:
            dx2 = (x2[None, :, None] - x0[:, None, None] - x1 * (dz2 / dz1)) + x0[:, None, None] * (dz2 / dz1)
        else:
            ratio = float(half(dz2 / dz1))
            origin = [0.0, 0.0, 0.0]
            of_middle = dz2 / dz1
            if self.cuts.tensor_core_form == 2:
                first, last = self.expected[layers[0]], self.expected[layers[2]]
                origin, of_middle = [first, first + (last - first) / ratio, last], ratio
            first_x, last_x = half(x0 - origin[0])[:, None, None], half(x2 - origin[2])[None, :, None]
            dx2 = last_x - first_x + first_x * ratio - (x1 - origin[1]) * of_middle
        chi2: Float64Array = (bend * dz1**2) ** 2 + (dx2 - bend * dz2**2) ** 2
        return chi2

    def curve(self, first: tuple[float, float], last: tuple[float, float]) -> tuple[float, float]:
        """Kink and offset through a first and a last hit (x, z)."""
        rise = last[0] - first[0] - self.line[2] * (last[1] - first[1])
        kink = self.kink
        for _ in range(2):
            kink = rise / (self.bend.lever(last[1], kink) - self.bend.lever(first[1], kink))
        return kink, first[0] - self.x_at(first[1]) - kink * self.bend.lever(first[1], kink)

    def on_curve(self, z: float, kink: float, offset: float) -> float:
        return self.x_at(z) + kink * self.bend.lever(z, kink) + offset

    def tolerance(self, kink: float) -> float:
        return float(self.cuts.x_tolerance + self.cuts.x_tolerance_per_kink * abs(kink))

    def extend(self, chosen: Mapping[int, int], candidates: Mapping[int, list[int]]) -> XSet:
        """Step 5: nearest candidates of the other layers, and the spread."""
        layers = sorted(chosen)
        ends = [(float(self.hits.x[chosen[layer]]), self.z[layer]) for layer in (layers[0], layers[-1])]
        kink, offset = self.curve(*ends)
        hits = dict(chosen)
        for layer in X_LAYERS:
            if layer in chosen or not candidates[layer]:
                continue
            distance = np.abs(self.hits.x[candidates[layer]] - self.on_curve(self.z[layer], kink, offset))
            if distance.min() < self.tolerance(kink):
                hits[layer] = candidates[layer][int(distance.argmin())]
        lever = self.bend.lever(Z_REFERENCE, kink)
        projected = [
            (self.hits.x[hit] - self.x_at(self.z[layer]) - self.offset) * lever / self.bend.lever(self.z[layer], kink)
            for layer, hit in hits.items()
        ]
        return XSet(dict(sorted(hits.items())), float(np.var(projected)))

    def best_sets(self, sets: list[XSet]) -> list[XSet]:
        """Step 6: the two different sets with the smallest spread."""
        good = [it for it in sets if len(it.hits) >= self.cuts.min_x_hits and it.spread < self.cuts.max_spread]
        good.sort(key=lambda it: it.spread)
        return good[:1] + [it for it in good[1:] if it.hits != good[0].hits][:1]

    def fitted(self, hits: Mapping[int, int], kink: float, offset: float) -> tuple[float, float]:
        """Kink and offset by least squares of the x hits."""
        x_hits = [(layer, hit) for layer, hit in hits.items() if layer in X_LAYERS]
        middle = self.bend.lever(Z_REFERENCE, kink)
        lever = np.array([self.bend.lever(self.z[layer], kink) - middle for layer, _ in x_hits])
        distance = np.array([self.hits.x[hit] - self.on_curve(self.z[layer], kink, offset) for layer, hit in x_hits])
        change, at = np.polyfit(lever, distance, 1)
        at += self.on_curve(Z_REFERENCE, kink, offset)
        kink += change
        return kink, float(at - self.x_at(Z_REFERENCE) - kink * self.bend.lever(Z_REFERENCE, kink))

    def complete(self, number: int, chosen: XSet) -> Candidate | None:
        """Steps 7 to 12."""
        hits = dict(chosen.hits)
        ends = [(float(self.hits.x[hits[layer]]), self.z[layer]) for layer in (min(hits), max(hits))]
        kink, offset = self.fitted(hits, *self.curve(*ends))
        for layer in X_LAYERS:
            place = self.on_curve(self.z[layer], kink, offset)
            if layer not in hits and (hit := self.nearest(layer, place, self.tolerance(kink))) is not None:
                hits[layer] = hit
        if len(hits) > len(chosen.hits):
            kink, offset = self.fitted(hits, kink, offset)
        for layer in STEREO_LAYERS:
            if (hit := self.nearest(layer, *self.stereo(layer, kink, offset))) is not None:
                hits[layer] = hit
        if len(hits) < self.cuts.min_hits:
            return None
        fit = ForwardSearch(self.record, self.hits, self.cuts.of_forward, 1)
        made = fit.fit(number, self.line, self.bend, self.where, hits, kink, offset, self.where.shift)
        return made if made is not None and made.quality < self.cuts.max_quality else None


@dataclass(slots=True)
class Found:
    """Of one VELO-UT track: its sets of x hits, the number of chi2, and its best continuation."""

    sets: list[NDArray[Any]]
    n_chi2: int
    best: Candidate | None


def search(record: np.void, hits: OracleHits, number: int, line: Line, ut: UtPart, cuts: Cuts) -> Found:
    """All steps for one VELO-UT track, which continues the VELO track `number`."""
    if not abs(ut.qop) < 1 / cuts.min_p:
        return Found([], 0, None)
    track = TrackSearch(record, hits, line, ut, cuts)
    candidates = track.candidates()
    triplets = track.triplets(candidates)
    sets = track.best_sets([track.extend(chosen, candidates) for _, _, chosen in triplets])
    completed = [it for chosen in sets if (it := track.complete(number, chosen)) is not None]
    return Found(
        [np.array([chosen.hits.get(layer, NO_HIT) for layer in X_LAYERS]) for chosen in sets],
        track.n_chi2,
        min(completed, key=lambda it: it.quality) if completed else None,
    )
