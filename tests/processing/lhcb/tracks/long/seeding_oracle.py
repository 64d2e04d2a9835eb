"""SciFi seeding and matching in slow and simple code: NumPy, double precision (docs/physics/seeding-and-matching.md).

A curve is followed by a Kalman filter with matrices, fits are least squares, and searches compare all hits.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field

import numpy as np
from numpy.typing import NDArray

Array = NDArray[np.float64]

Z0, CUBIC, Z_MAGNET = 8520.0, -0.00028, 5200.0
X_LAYERS, STEREO_LAYERS = (0, 3, 4, 7, 8, 11), (1, 2, 5, 6, 9, 10)
HIT_ERROR, CURVATURE_ERROR, DEVIATIONS = 0.13, 1.2e-6, 3.0
MAX_X0, MAX_MAGNET_X, MAX_X_CHI2, X_PENALTY = 3400.0, 1300.0, 30.0, 6.0
N_BINS, FIRST_BIN, BIN = 320, -0.004, 0.001
Y_ERROR, MAX_LINE_CHI2, Y_PENALTY, MAX_CHI2, MIN_HITS = 2.2, 16.0, 5.0, 40.0, 9
MAX_PAIR_CHI2, MAX_SCORE, MAX_SHARED = 40.0, 1.5, 2
UT_Z = np.array([2327.5, 2372.5, 2597.5, 2642.5])
UT_KICK = np.array([13.08, 13.82, 19.10, 20.34])
UT_DX_DY = np.array([0.0, 0.0874887, -0.0874887, 0.0])

Hit = tuple[int, int]
"""(layer, index among all hits)."""


def bend(z: Array | float) -> Array:
    distance = np.asarray(z) - Z0
    return np.asarray(distance**2 * (1.0 + CUBIC * distance))


@dataclass(frozen=True)
class Detector:
    """z of the layers at y = 0, their stereo angles, and dz/dy."""

    z: Array
    dx_dy: Array
    dz_dy: float

    def row(self, layer: int) -> Array:
        return np.array([1.0, self.z[layer] - Z0, float(bend(self.z[layer]))])


@dataclass(frozen=True)
class Half:
    """The hits of one half: for each layer x, ascending, and the index among all hits."""

    x: list[Array]
    number: list[NDArray[np.int64]]
    upper: bool


@dataclass
class Curve:
    score: float
    parameters: Array
    hits: tuple[Hit, ...]


@dataclass
class Seed:
    parameters: Array
    """a, b, c, y, ty at the reference plane."""
    chi2: float
    hits: tuple[Hit, ...]


@dataclass
class _Following:
    """A Kalman filter for (a, b, c)."""

    state: Array
    covariance: Array
    chi2: float = 0.0
    hits: list[Hit] = field(default_factory=list)

    def expected(self, row: Array) -> tuple[float, float]:
        return float(row @ self.state), float(row @ self.covariance @ row) + HIT_ERROR**2

    def with_hit(self, row: Array, x: float, hit: Hit) -> _Following:
        place, variance = self.expected(row)
        gain = self.covariance @ row / variance
        residual = x - place
        return _Following(
            self.state + gain * residual,
            self.covariance - np.outer(gain, row @ self.covariance),
            self.chi2 + residual**2 / variance,
            [*self.hits, hit],
        )


def closest(x: Array, where: float, tolerance: float) -> int | None:
    if len(x) == 0:
        return None
    i = int(np.argmin(np.abs(x - where)))
    return i if abs(x[i] - where) <= tolerance else None


def _search(
    detector: Detector,
    half: Half,
    pair: tuple[int, int],
    steps: tuple[int, ...],
    curvature: float,
    taken: set[Hit] | None,
) -> list[Curve]:
    """Curves that start with pairs of hits; with `taken`, the second search."""
    first, last = pair
    z, dz = detector.z[first], detector.z[last] - detector.z[first]
    rows = {layer: detector.row(layer) for layer in X_LAYERS}
    to_curve = np.linalg.inv(np.array([rows[first], rows[last], [0.0, 0.0, 1.0]]))
    start = to_curve @ np.diag([HIT_ERROR**2, HIT_ERROR**2, CURVATURE_ERROR**2]) @ to_curve.T
    found: list[Curve] = []
    for i, x in enumerate(half.x[first]):
        if taken is not None and (first, i) in taken:
            continue
        slopes = (half.x[last] - x) / dz
        x0 = x - slopes * z
        possible = (np.abs(x0) <= MAX_X0) & (np.abs(x - slopes * (z - Z_MAGNET)) <= MAX_MAGNET_X)
        of_hit: list[Curve] = []
        for j in np.flatnonzero(possible):
            hits = [(first, i), (last, int(j))]
            state = to_curve @ np.array([x, half.x[last][j], curvature * x0[j]])
            of_hit += _follow(half, _Following(state, start, 0.0, hits), steps, rows, strict=taken is not None)
        found += _two_best(of_hit, steps[1])
    return found


def _two_best(curves: list[Curve], second_step: int) -> list[Curve]:
    """Only the better one of curves that also share the last hit and the hit of the second step."""
    chosen: list[Curve] = []
    shared: set[frozenset[Hit]] = set()
    for curve in sorted(curves, key=lambda curve: curve.score):
        alike = frozenset(hit for hit in curve.hits if hit == curve.hits[1] or hit[0] == second_step)
        if len(chosen) < 2 and (len(alike) < 2 or alike not in shared):
            chosen.append(curve)
            shared.add(alike)
    return chosen


def _follow(
    half: Half, begin: _Following, steps: tuple[int, ...], rows: dict[int, Array], *, strict: bool
) -> list[Curve]:
    curves: list[Curve] = []
    for skipped in range(1 if strict else 2):
        layer = steps[skipped]
        place, variance = begin.expected(rows[layer])
        tolerance = DEVIATIONS * np.sqrt(variance)
        for k in np.flatnonzero(np.abs(half.x[layer] - place) <= tolerance):
            track = begin.with_hit(rows[layer], float(half.x[layer][k]), (layer, int(k)))
            complete = _rest(half, track, steps[skipped + 1 :], rows, 1 - skipped, strict and steps[1])
            if complete is None:
                continue
            if complete.chi2 < MAX_X_CHI2:
                missing = len(X_LAYERS) - len(complete.hits)
                curves.append(Curve(complete.chi2 + X_PENALTY * missing, complete.state, tuple(complete.hits)))
    return curves


def _rest(
    half: Half, track: _Following, steps: tuple[int, ...], rows: dict[int, Array], may_miss: int, needed: int | bool
) -> _Following | None:
    for layer in steps:
        place, variance = track.expected(rows[layer])
        k = closest(half.x[layer], place, DEVIATIONS * float(np.sqrt(variance)))
        if k is None:
            may_miss -= 1
            if may_miss < 0 or (needed and layer == needed):
                return None
        else:
            track = track.with_hit(rows[layer], float(half.x[layer][k]), (layer, k))
    return track


def _coarse(score: float) -> int:
    """The upper half of the bits of a score."""
    return int(np.float32(score).view(np.uint32)) >> 16


def without_clones(curves: Sequence[Curve]) -> list[Curve]:
    """Tracks that share at most two hits with better ones."""
    order = sorted(range(len(curves)), key=lambda i: (_coarse(curves[i].score), i))
    owner: dict[Hit, int] = {}
    for i in order:
        for hit in curves[i].hits:
            owner.setdefault(hit, i)
    return [c for i, c in enumerate(curves) if sum(owner[hit] != i for hit in c.hits) <= MAX_SHARED]


def seed_in_x(detector: Detector, halves: Sequence[Half]) -> list[tuple[Half, Curve]]:
    """The curves through x hits, as the kernel orders them: by search, half, first hit."""
    found: list[tuple[int, Half, Curve]] = []
    for half in halves:
        first = without_clones(_search(detector, half, (8, 11), (7, 4, 3, 0), -3.9e-9, None))
        taken = {hit for curve in first for hit in curve.hits}
        second = _search(detector, half, (0, 3), (4, 7, 8, 11), -4.2e-9, taken)
        found += [
            (int(any(curve is one for one in second)), half, curve) for curve in without_clones([*first, *second])
        ]
    return [(half, curve) for _, half, curve in sorted(found, key=lambda it: it[0])]


def kick_of(parameters: Array) -> tuple[float, float, float]:
    """The kick, the slope in x before it, and the change of the slope in y relative to y / z."""
    a, b = float(parameters[0]), float(parameters[1])
    before = (a + b * (Z_MAGNET - Z0)) / Z_MAGNET
    kick = b - before
    return kick, before, 0.38 * kick * before - 0.55 * kick**2


@dataclass(frozen=True)
class _StereoLayer:
    number: int
    z: float
    depth: float
    place: float
    y: Array
    first: int


def _fit_line(points: Sequence[tuple[float, float]], y_slope: float, pointing: float) -> tuple[float, float, float]:
    """y, ty and chi2 of a line through (z, y), with a constraint to the collisions."""
    rows = [[1.0 / Y_ERROR, (z - Z0) / Y_ERROR] for z, _ in points] + [
        [-(1.0 + y_slope) / Z0 / pointing, 1.0 / pointing]
    ]
    values = np.array([y / Y_ERROR for _, y in points] + [0.0])
    solution = np.linalg.lstsq(np.array(rows), values, rcond=None)[0]
    residuals = values - np.array(rows) @ solution
    return float(solution[0]), float(solution[1]), float(residuals @ residuals)


def lines_in_y(detector: Detector, half: Half, curve: Curve) -> list[tuple[float, tuple[Hit, ...], float, float]]:
    """The two best lines through stereo hits: score, hits, y, ty."""
    sign = 1.0 if half.upper else -1.0
    kick, _, y_slope = kick_of(curve.parameters)
    pointing = 0.0015 + 0.004 * abs(kick)
    layers: list[_StereoLayer] = []
    bins = np.zeros(N_BINS, int)
    for i, layer in enumerate(STEREO_LAYERS):
        z, angle = float(detector.z[layer]), float(detector.dx_dy[layer])
        place = float(detector.row(layer) @ curve.parameters)
        edges = sorted(place - angle * sign * y for y in (-25.0, 2450.0))
        first, end = np.searchsorted(half.x[layer], edges)
        depth = Z0 + (1.0 + y_slope) * (z - Z0)
        at = _StereoLayer(layer, z, depth, place, (place - half.x[layer][first:end]) / angle, int(first))
        layers.append(at)
        bin_numbers = np.floor((sign * at.y / depth - FIRST_BIN) / BIN).astype(int)
        bins[bin_numbers[(bin_numbers >= 0) & (bin_numbers < N_BINS)]] |= 1 << i
    counts = np.array([0, *((bins[i] | bins[i + 1]).item().bit_count() for i in range(N_BINS - 1)), 0])

    def fit(chosen: dict[int, int]) -> tuple[float, float, float]:
        return _fit_line([(layers[i].z, float(layers[i].y[k])) for i, k in chosen.items()], y_slope, pointing)

    found: list[tuple[float, tuple[Hit, ...], float, float]] = []
    for b in range(N_BINS - 1):
        if not (counts[b + 1] >= 4 and counts[b + 1] > counts[b] and counts[b + 1] >= counts[b + 2]):
            continue
        slope = sign * (FIRST_BIN + BIN * (b + 1))
        nearest = [closest(at.y, slope * at.depth, BIN * at.z) for at in layers]
        chosen = {i: k for i, k in enumerate(nearest) if k is not None}
        if len(chosen) < 4:
            continue
        y, ty, chi2 = fit(chosen)
        while chi2 > MAX_LINE_CHI2 and len(chosen) > 4:
            distances = {i: abs(layers[i].y[k] - y - ty * (layers[i].z - Z0)) for i, k in chosen.items()}
            del chosen[max(distances, key=distances.__getitem__)]
            y, ty, chi2 = fit(chosen)
        hits = tuple((layers[i].number, layers[i].first + k) for i, k in chosen.items())
        if chi2 < MAX_LINE_CHI2 and all(hits != other[1] for other in found):
            found.append((chi2 + Y_PENALTY * (6 - len(chosen)), hits, y, ty))
    return sorted(found, key=lambda line: line[0])[:2]


def fit_seed(detector: Detector, half: Half, hits: tuple[Hit, ...], y: float, ty: float) -> Seed:
    """All hits, each at the z of the track's y."""
    layers = [layer for layer, _ in hits]
    x = np.array([half.x[layer][k] for layer, k in hits])
    z = detector.z[layers] + detector.dz_dy * (y + ty * (detector.z[layers] - Z0))
    angle = detector.dx_dy[layers]
    scales = np.array([1.0, 1e-3, 1e-6, 1.0, 1e-3])
    rows = np.stack([np.ones_like(z), z - Z0, bend(z), -angle, -angle * (z - Z0)], axis=1) * scales
    solution = np.linalg.lstsq(rows, x, rcond=None)[0]
    residuals = x - rows @ solution
    numbers = tuple((layer, int(half.number[layer][k])) for layer, k in hits)
    return Seed(solution * scales, float(residuals @ residuals) / HIT_ERROR**2, tuple(sorted(numbers)))


def seeds(detector: Detector, halves: Sequence[Half]) -> list[Seed]:
    """The SciFi seeds of an event."""
    found = []
    for half, curve in seed_in_x(detector, halves):
        for _, hits, y, ty in lines_in_y(detector, half, curve):
            if len(curve.hits) + len(hits) >= MIN_HITS:
                seed = fit_seed(detector, half, (*curve.hits, *hits), y, ty)
                if seed.chi2 < MAX_CHI2:
                    found.append(seed)
    return found


@dataclass(frozen=True)
class Line:
    """A VELO track at z = 770 mm."""

    x: float
    y: float
    tx: float
    ty: float


def pair_chi2(seed: Seed, line: Line) -> tuple[float, float, float, float]:
    """x of the crossing of the lines, y, slope in y, curvature."""
    a, b, c, y, ty = (float(value) for value in seed.parameters)
    kick = b - line.tx
    plane = 5185.26 + 141.68 * abs(kick) + 247.6 * kick**2
    plane += 8.35 * line.tx**2 - 1284.6 * line.ty**2 + 523.05 * kick * line.tx
    dx = a + b * (plane - Z0) - line.x - line.tx * (plane - 770.0)
    dy = y - line.y - line.ty * (Z0 - 770.0) - 1000.0 * line.ty * (6.66 * kick * line.tx - 0.34 * kick**2)
    dty = ty - line.ty - line.ty * (1.158 * kick * line.tx - 0.588 * kick**2)
    dc = c - kick * (2.213e-5 - 4.33e-4 * line.ty**2 - 4.5e-5 * line.tx * b)
    return (
        dx**2 / (1.2**2 + (30.0 * kick) ** 2),
        dy**2 / (2.5**2 + (42.0 * kick) ** 2),
        dty**2 / (1.3e-3**2 + (9e-3 * kick) ** 2),
        dc**2 / (0.25e-6**2 + (1.7e-6 * kick) ** 2),
    )


@dataclass(frozen=True)
class UtHits:
    """A UT hit: x and z at y = 0, and the ends in y."""

    x: Array
    z: Array
    y_begin: Array
    y_end: Array

    @property
    def layer(self) -> NDArray[np.int64]:
        return np.searchsorted([2350.0, 2485.0, 2620.0], self.z, side="right")


def confirm_in_ut(ut: UtHits, line: Line, kick: float) -> tuple[int, float, int]:
    """Number of layers with a hit at one displacement, chi2, and number of crossed layers."""
    error, spread = 0.35 + 6.0 * abs(kick), 0.1 + 0.6 * abs(kick)
    distance = UT_Z - 770.0
    x, y = line.x + line.tx * distance + UT_KICK * kick, line.y + line.ty * distance
    in_hole = (np.abs(x) < 36.0) & (np.abs(y) < 36.0)
    n_crossed = int((~in_hole & (np.abs(x) < 760.0) & (np.abs(y) < 660.0)).sum())
    layer = ut.layer
    to_hit = ut.z - 770.0
    y_hit = line.y + line.ty * to_hit
    residual = ut.x + UT_DX_DY[layer] * y_hit - line.x - line.tx * to_hit - UT_KICK[layer] * kick
    displacement = residual / (1.0 + 0.065 / 150.0 * (ut.z - 2485.0))
    near = (np.abs(displacement) < 4.0 * error) & (y_hit >= ut.y_begin - 2.0) & (y_hit <= ut.y_end + 2.0)
    candidates = [displacement[near & (layer == number)] for number in range(4)]
    best = (0, 0.0)
    for first in candidates[:2]:  # With three layers one is among the first two, with four the first.
        if best[0] == 4:
            break
        for common in first:
            chosen = np.array([d[np.argmin(np.abs(d - common))] for d in candidates if len(d)])
            chosen = chosen[np.abs(chosen - common) < 2.0 * spread]
            mean = chosen.mean()
            chi2 = float((mean / error) ** 2 + (((chosen - mean) / spread) ** 2).sum())
            if len(chosen) > best[0] or (len(chosen) == best[0] and chi2 < best[1]):
                best = (len(chosen), chi2)
    return (*best, n_crossed)


def score_of(seed: Seed, line: Line, ut: UtHits) -> float | None:
    """Log-likelihood ratio of a pair; None if the pair does not match."""
    of_x, of_y, of_ty, of_curvature = pair_chi2(seed, line)
    if of_x + of_y + of_ty + of_curvature >= MAX_PAIR_CHI2:
        return None
    kick = float(seed.parameters[1]) - line.tx
    score = 0.5 * (of_x + of_y) + 0.1 * (of_ty + of_curvature) - 4.26 - len(seed.hits)
    score += 3.6 * np.log(abs(kick) + 0.01) - 2.4 * np.log(line.tx**2 + line.ty**2 + 1e-6)
    if score >= MAX_SCORE:
        return None
    n_layers, chi2, n_crossed = confirm_in_ut(ut, line, kick)
    if n_crossed >= 3:
        score += 6.0 if n_layers < 3 else 0.4 * min(chi2, 30.0) + 2.0 * (n_layers == 3)
    return float(score) if score < MAX_SCORE else None


def matches(found: Sequence[Seed], lines: dict[int, Line], ut: UtHits) -> dict[int, int]:
    """VELO track -> seed, for the tracks of `lines`, by index."""
    best: dict[int, tuple[int, int]] = {}
    for i, seed in enumerate(found):
        for track, line in lines.items():
            score = score_of(seed, line, ut)
            if score is not None:
                coarse = int((score + 64.0) * 512.0)
                best[track] = min(best.get(track, (coarse, i)), (coarse, i))
    owner: dict[Hit, int] = {}
    for track in sorted(best, key=lambda track: (best[track][0], track)):
        for hit in found[best[track][1]].hits:
            owner.setdefault(hit, track)
    return {
        track: seed
        for track, (_, seed) in sorted(best.items())
        if sum(owner[hit] != track for hit in found[seed].hits) <= MAX_SHARED
    }
