"""Input of the forward search in plain Python (forward_oracle.py): settings, hits, bend in the magnet, UT
constraints."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field
from math import sqrt

import numpy as np
from numpy.typing import NDArray

Z_VELO, Z_UT, Z_REFERENCE = 770.0, 2485.0, 8520.0
MEV = 1e-3
X_LAYERS, STEREO_LAYERS = (0, 3, 4, 7, 8, 11), (1, 2, 5, 6, 9, 10)
# First and last layer of a pair, the layers between them, the other layers.
SEEDS: tuple[Seed, ...] = ((0, 8, (4, 7), (3, 11)), (3, 11, (4, 7), (0, 8)))
UT_DX_DY = (0.0, 0.08748867, -0.0874886, 0.0)
Float64Array = NDArray[np.float64]
Seed = tuple[int, int, tuple[int, int], tuple[int, int]]
Line = tuple[float, float, float, float]
"""x, y, tx, ty of a VELO track at Z_VELO."""


@dataclass(frozen=True, slots=True)
class Settings:
    """The constants of the search; mm, MeV. Errors are pairs: a constant part, and a part per kink."""

    min_p: float = 1800.0
    qop_low: float = 0.43
    qop_high: float = 1.75
    qop_margin: float = 0.045
    offset_of_ut: float = 2.66
    shift_of_ut: float = -3.86
    slope_of_ut: float = 7.5e-4
    sigma_offset: tuple[float, float] = (1.0, 27.0)
    sigma_shift: tuple[float, float] = (1.7, 41.0)
    sigma_offset_ut: tuple[float, float] = (0.6, 10.0)
    sigma_shift_ut: tuple[float, float] = (1.2, 20.0)
    sigma_ty: tuple[float, float] = (3e-4, 7.5e-3)
    sigma_a: tuple[float, float] = (0.15, 5.0)
    sigma_b: tuple[float, float] = (1e-4, 4e-3)
    sigma_c: tuple[float, float] = (0.35, 7.5)
    sigma_hit: tuple[float, float] = (0.1, 0.0)
    hit_scatter: float = 0.67
    sigma_curvature: tuple[float, float] = (1.5e-7, 1e-6)
    n_sigma: float = 3.5
    x_window: tuple[float, float] = (0.5, 1.4)
    max_pairs: int = 200_000
    max_candidates: int = 12_000
    stereo_margin: float = 0.7
    max_shift_spread: float = 7.0
    max_stereo_hits: int = 3
    min_hits: int = 9
    max_hit_chi2: float = 16.0
    weight_chi2: float = 0.6
    penalty_missing: float = 4.0
    penalty_missing_ut: float = 8.0
    per_kink: float = 15.0
    max_quality: float = 70.0
    good_quality: float = 40.0
    max_shared: float = 0.4
    max_used_hits: int = 2
    max_tx: float = 0.35
    max_ty: float = 0.30


WITHOUT_UT = Settings(min_p=5000.0, n_sigma=2.5, max_quality=14.0, good_quality=6.0)
"""The constants of the search without UT."""


@dataclass(frozen=True, slots=True)
class OracleHits:
    """SciFi hits of an event in the order of the chain: x and z at y = 0; zone offsets [25]."""

    x: Float64Array
    z: Float64Array
    zone_offset: NDArray[np.int64]

    def zone(self, layer: int, half: int) -> slice:
        zone = 2 * layer + half
        return slice(int(self.zone_offset[zone]), int(self.zone_offset[zone + 1]))

    def window(self, layer: int, half: int, low: float, high: float) -> tuple[int, int]:
        zone = self.zone(layer, half)
        begin, end = zone.start + np.searchsorted(self.x[zone], [low, high])
        return int(begin), int(end)


@dataclass(frozen=True, slots=True)
class UtPart:
    """Hits of a VELO-UT track (layer, x and z at y = 0, 1/sigma^2), and its q/p."""

    number: int
    qop: float
    layer: Sequence[int]
    x: Sequence[float]
    z: Sequence[float]
    weight: Sequence[float]


@dataclass(slots=True)
class Candidate:
    """A VELO track and the SciFi hits that continue it: layer -> hit."""

    velo_track: int
    hits: dict[int, int]
    qop: float
    x: float
    y: float
    tx: float
    ty: float
    quality: float
    ut_track: int = -1
    terms: dict[str, float] = field(default_factory=dict)


@dataclass(slots=True)
class Budget:
    """Number of pairs and candidates that the search for a track may still try."""

    pairs: int
    candidates: int


class Bend:
    """The functions of the magnet for one VELO track, as polynomials of the kink (or of s)."""

    def __init__(self, record: np.void, tx: float, ty: float) -> None:
        self.polarity = float(record["polarity"])
        self.coefficients: dict[str, list[float]] = {}
        names = ("z_magnet", "curvature", "cubic", "kick", "kick_of_momentum", "y_shift", "y_slope")
        for name in (*names, "ut_z_magnet", "ut_kick"):
            odd = name in ("y_shift", "y_slope")
            table = record[name].astype(np.float64)
            self.coefficients[name] = [
                sum(
                    table[k, i, j] * tx ** (2 * i + (1 - k % 2 if odd else k % 2)) * ty ** (2 * j)
                    for i in range(2)
                    for j in range(3)
                )
                for k in range(5)
            ]
        self.tx, self.ty = tx, ty
        self.sine = tx / sqrt(1 + tx * tx + ty * ty)

    def value(self, name: str, bend: float) -> float:
        a = self.coefficients[name]
        return a[0] + bend * (a[1] + bend * (a[2] + bend * (a[3] + bend * a[4])))

    def lever(self, z: float, kink: float) -> float:
        dz = z - Z_REFERENCE
        return (
            z
            - self.value("z_magnet", kink)
            + (self.value("curvature", kink) + self.value("cubic", kink) * dz) * dz * dz
        )

    def y_change(self, z: float, kink: float) -> float:
        return self.ty * kink * (self.value("y_shift", kink) + self.value("y_slope", kink) * (z - Z_REFERENCE))

    def s(self, kink: float) -> float:
        """polarity q/p in c/GeV."""
        ty = self.ty * (1 + kink * self.value("y_slope", kink))
        tx = self.tx + kink
        return (tx / sqrt(1 + tx * tx + ty * ty) - self.sine) / (MEV * self.value("kick", kink))

    def kink(self, s: float) -> float:
        return self._tx(s * MEV * self.value("kick_of_momentum", s)) - self.tx

    def ut(self, s: float) -> tuple[float, float]:
        """Shift of the track by the magnet in the middle of the UT, and its change of slope there."""
        change = self._tx(s * MEV * self.value("ut_kick", s)) - self.tx
        return change * (Z_UT - self.value("ut_z_magnet", s)), change

    def _tx(self, change: float) -> float:
        sine = min(max(self.sine + change, -0.9), 0.9)
        return sine * sqrt((1 + self.ty**2) / (1 - sine * sine))


@dataclass(frozen=True, slots=True)
class Hypothesis:
    """Search window of a VELO track in the SciFi: kinks from `low` to `high`; offset in x (mm) = offset + per_kink *
    kink, and shift in y, with errors."""

    low: float
    high: float
    offset: float
    per_kink: float
    shift: float
    sigma_offset: tuple[float, float]
    sigma_shift: tuple[float, float]
    ut: UtPart | None = None
    # a, b, c of the UT hits relative to the line of the VELO, chi2, and the change of a and b per kink.
    abc: tuple[float, float, float] = (0.0, 0.0, 0.0)
    ut_chi2: float = 0.0
    a_per_kink: float = 0.0
    b_per_kink: float = 0.0


def parabola(x: Sequence[float], y: Sequence[float]) -> tuple[float, float, float]:
    """Coefficients of the parabola through three points."""
    first = (y[1] - y[0]) / (x[1] - x[0])
    second = (y[2] - y[1]) / (x[2] - x[1])
    a = (second - first) / (x[2] - x[0])
    b = first - a * (x[0] + x[1])
    return y[0] - x[0] * (b + a * x[0]), b, a


def value(coefficients: tuple[float, float, float], x: float) -> float:
    return coefficients[0] + x * (coefficients[1] + x * coefficients[2])


def sigma_at(pair: tuple[float, float], kink: float) -> float:
    return pair[0] + pair[1] * abs(kink)


def without_ut(bend: Bend, s: Settings) -> Hypothesis:
    """Window for any momentum above the minimum."""
    ends = [bend.kink(sign * 1e3 / s.min_p) for sign in (-1, 1)]
    return Hypothesis(min(ends), max(ends), 0.0, 0.0, 0.0, s.sigma_offset, s.sigma_shift)


def with_ut(bend: Bend, line: Line, ut: UtPart, s: Settings) -> Hypothesis:
    """Window from the momentum of a VELO-UT track, and from its scattering behind the VELO according to the UT hits."""
    x, y, tx, ty = line
    polarity_qop = bend.polarity * ut.qop * 1e3
    sign = 1.0 if polarity_qop >= 0 else -1.0
    most = 1e3 / s.min_p
    ends = [
        bend.kink(min(max(bound, -most), most))
        for bound in (polarity_qop * s.qop_low - sign * s.qop_margin, polarity_qop * s.qop_high + sign * s.qop_margin)
    ]
    rows = [(0.0, 1 / 0.02, 0.0, 0.0), (0.0, 0.0, 1 / 6.0, 0.0)]
    for layer, hit_x, hit_z, weight in zip(ut.layer, ut.x, ut.z, ut.weight, strict=True):
        u = hit_x + UT_DX_DY[layer] * (y + ty * (hit_z - Z_VELO)) - x - tx * (hit_z - Z_VELO)
        root = sqrt(weight)
        rows.append((root, root * (hit_z - Z_UT), root * UT_DX_DY[layer], root * u))
    table = np.array(rows)
    abc = np.linalg.lstsq(table[:, :3], table[:, 3], rcond=None)[0]
    chi2 = float(((table[:, 3] - table[:, :3] @ abc) ** 2).sum())
    # For a track of 5 GeV or of the measured momentum, whichever bends more.
    probe = sign * max(abs(polarity_qop), 0.2)
    kink = bend.kink(probe)
    a, b = bend.ut(probe)
    return Hypothesis(
        min(ends),
        max(ends),
        s.offset_of_ut * abc[0],
        -s.offset_of_ut * a / kink,
        s.shift_of_ut * abc[2],
        s.sigma_offset_ut,
        s.sigma_shift_ut,
        ut,
        (float(abc[0]), float(abc[1]), float(abc[2])),
        chi2,
        a / kink,
        b / kink,
    )
