"""VELO-UT tracks in plain Python from the description of the algorithm (docs/physics/ut.md).

Windows search all hits of a layer; all sums are in double precision.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from itertools import product
from math import hypot, sqrt

import numpy as np
from numpy.typing import NDArray

from hltnode.processing.lhcb.geometry.ideal_ut import DX_DY
from hltnode.processing.lhcb.geometry.ut_tables import MAX_ORIGIN, MAX_TY, N_ORIGIN, N_TY, Z_MID_UT, UtTables

Z_VELO = 770.0
Z_KINK = 1780.0
KINK_SLOPE_ERROR = 1e-4
FIELD_TO_QOP = 3.3356e-3


@dataclass(frozen=True, slots=True)
class Settings:
    """The constants of the search and of the selection; mm, MeV."""

    min_p: float = 1000.0
    min_pt: float = 100.0
    sufficient_p: float = 2000.0
    max_tx: float = 0.35
    max_ty: float = 0.30
    min_radius: float = 33.0
    max_slope_difference: float = 0.03
    max_distance: float = 0.8
    max_kink_distance: float = 7.0
    max_window_hits: int = 24
    three_hits_penalty: float = 50.0
    max_search_chi2: float = 600.0
    max_chi2: float = 80.0
    max_shared_hits: int = 1


@dataclass(frozen=True, slots=True)
class Hit:
    """A hit in the window of a track: `u` is its distance in x from the straight line of the VELO track (mm)."""

    number: int
    layer: int
    u: float
    z: float
    weight: float


@dataclass(frozen=True, slots=True)
class State:
    """A VELO track at z = 770 mm."""

    number: int
    x: float
    y: float
    tx: float
    ty: float


@dataclass(frozen=True, slots=True)
class UtTrack:
    """A VELO track and the hits that continue it."""

    velo_track: int
    hits: tuple[Hit, ...]
    quality: float
    chi2: float
    qop: float
    x: float
    z: float
    tx: float


@dataclass(frozen=True, slots=True)
class OracleHits:
    """The UT hits of an event, in the order of the chain; `layer` 0..3."""

    x: NDArray[np.float64]
    z: NDArray[np.float64]
    y_begin: NDArray[np.float64]
    y_end: NDArray[np.float64]
    weight: NDArray[np.float64]
    layer: NDArray[np.int64]


def window(state: State, hits: OracleHits, layer: int, tables: UtTables, s: Settings) -> list[Hit]:
    """The hits of a layer inside the window of the minimum momentum; only the nearest ones if there are many."""
    per_theta = 1 / max(hypot(state.tx, state.ty), 1e-6)
    least_p = min(s.sufficient_p, max(s.min_p, s.min_pt * per_theta))
    factor = tables.dx_lay[min(int(100 * abs(state.ty) + 0.5), len(tables.dx_lay) - 1), layer]
    tolerance = 1 / (4.0212e-5 * least_p * factor)
    of_layer = np.flatnonzero(hits.layer == layer)
    z = hits.z[of_layer]
    y = state.y + state.ty * (z - Z_VELO)
    u = hits.x[of_layer] + DX_DY[layer] * y - state.x - state.tx * (z - Z_VELO)
    margin = 0.5 + 0.08 * np.abs(u) / factor
    inside = (np.abs(u) <= tolerance) & (hits.y_begin[of_layer] <= y + margin) & (y - margin <= hits.y_end[of_layer])
    found = [
        Hit(int(i), layer, float(distance), float(hits.z[i]), float(hits.weight[i]))
        for i, distance in zip(of_layer[inside], u[inside], strict=True)
    ]
    nearest = sorted(found, key=lambda hit: abs(hit.u))[: s.max_window_hits]
    return sorted(nearest, key=lambda hit: hit.number)


def lines(windows: Sequence[list[Hit]], a: int, b: int, s: Settings) -> list[tuple[Hit, Hit, float]]:
    """The pairs of hits of two layers, and their slopes, that can be the line of a particle."""
    found = []
    for hit_a, hit_b in product(windows[a], windows[b]):
        slope = (hit_b.u - hit_a.u) / (hit_b.z - hit_a.z)
        if abs(slope) > s.max_slope_difference:
            continue
        if abs(hit_a.u + slope * (Z_KINK - hit_a.z)) <= s.max_kink_distance:
            found.append((hit_a, hit_b, slope))
    return found


def candidates(windows: Sequence[list[Hit]], layers: tuple[int, int, int, int], s: Settings) -> list[tuple[Hit, ...]]:
    """Hits of at least three layers near a line through the hits of the first two of `layers`.

    The third layer is between them, the last one behind the second.
    """
    a, b, between, beyond = layers
    found = []
    for hit_a, hit_b, slope in lines(windows, a, b, s):
        hits = [hit_a, hit_b]
        for layer, reference in ((between, hit_a), (beyond, hit_b)):
            distances = [abs(reference.u + slope * (hit.z - reference.z) - hit.u) for hit in windows[layer]]
            if distances and min(distances) < s.max_distance:
                hits.append(windows[layer][int(np.argmin(distances))])
        if len(hits) >= 3:
            found.append(tuple(sorted(hits, key=lambda hit: hit.layer)))
    return found


def fit_kink(hits: Sequence[Hit]) -> tuple[float, float, float]:
    """The line u = u_kink + slope (z - z_kink) that fits hits and the VELO track: chi2 / (hits - 1), u_kink, slope."""
    rows = [(1.0, 0.0, 0.0, 1 / (KINK_SLOPE_ERROR * (Z_KINK - Z_VELO)) ** 2)]
    rows += [(1.0, hit.z - Z_KINK, hit.u, hit.weight) for hit in hits]
    design, weight = np.array([row[:2] for row in rows]), np.array([row[3] for row in rows])
    measured = np.array([row[2] for row in rows])
    found = np.linalg.solve(design.T @ (weight[:, None] * design), design.T @ (weight * measured))
    chi2 = float(weight @ (measured - design @ found) ** 2)
    return chi2 / (len(hits) - 1), float(found[0]), float(found[1])


def bending_power(state: State, tables: UtTables) -> float:
    """Field integral (T m) from the end of the VELO to the middle of the UT, for a track from its closest approach
    to z."""
    origin = Z_VELO - (state.x * state.tx + state.y * state.ty) / max(state.tx**2 + state.ty**2, 1e-8)
    row = (min(max(origin, -MAX_ORIGIN), MAX_ORIGIN) + MAX_ORIGIN) * N_ORIGIN / (2 * MAX_ORIGIN)
    column = (min(max(state.ty, -MAX_TY), MAX_TY) + MAX_TY) * N_TY / (2 * MAX_TY)
    i, j = min(int(row), N_ORIGIN - 1), min(int(column), N_TY - 1)
    table = tables.bdl_from(Z_VELO)
    corners = table[i : i + 2, j : j + 2].astype(np.float64)
    lower, upper = corners[:, 0] + (column - j) * (corners[:, 1] - corners[:, 0])
    return float(lower + (row - i) * (upper - lower))


def fit_momentum(
    state: State, hits: Sequence[Hit], u_kink: float, slope: float, bdl: float, polarity: float
) -> tuple[float, float, float, float]:
    """Fit with an offset in y and errors of scattering: chi2, q/p, x and tx at the last hit."""
    to_qop = polarity * FIELD_TO_QOP / bdl if abs(bdl) > 1e-8 else 0.0
    velo_slope = state.tx + u_kink / (Z_KINK - Z_VELO)
    ut_slope = state.tx + slope
    kick = velo_slope * sqrt(1 + velo_slope**2) - ut_slope * sqrt(1 + ut_slope**2)
    ty2 = state.ty**2
    per_p = max(abs(kick * to_qop), 1e-9) * sqrt(1 + ty2)
    scatter_weight = 1 / ((0.14 + 1e4 * per_p) ** 2 + (0.12 + 3e3 * per_p) ** 2)
    z_kink = 2010.0 + 2240.0 * ty2 + 71330.0 * ty2**2
    rows = [(1.0, z_kink - Z_MID_UT, 0.0, 0.0, scatter_weight), (0.0, 0.0, 1.0, 0.0, scatter_weight / (1 + ty2))]
    rows += [(1.0, hit.z - Z_MID_UT, -DX_DY[hit.layer], hit.u, hit.weight) for hit in hits]
    design, weight = np.array([row[:3] for row in rows]), np.array([row[4] for row in rows])
    design[:, 1] *= 0.001
    measured = np.array([row[3] for row in rows])
    found = np.linalg.solve(design.T @ (weight[:, None] * design), design.T @ (weight * measured))
    u_mid, slope = float(found[0]), 0.001 * float(found[1])
    ut_slope = state.tx + slope
    residual2 = weight * (measured - design @ found) ** 2
    chi2 = (residual2[0] + residual2[2:].sum()) / (1 + ut_slope**2) + residual2[1]
    u_at_kink = u_mid + slope * (z_kink - Z_MID_UT)
    velo_slope = state.tx + 0.5 * u_at_kink / (z_kink - Z_VELO)
    kick = velo_slope * sqrt(1 + velo_slope**2 + ty2) - ut_slope * sqrt(1 + ut_slope**2 + ty2)
    z_last = max(hit.z for hit in hits)
    x_last = state.x + state.tx * (z_last - Z_VELO) + u_mid + slope * (z_last - Z_MID_UT)
    return float(chi2), kick * to_qop, x_last, ut_slope


def best_continuation(state: State, hits: OracleHits, tables: UtTables, polarity: float, s: Settings) -> UtTrack | None:
    """The best hits to continue a VELO track, or None."""
    to_middle = Z_MID_UT - Z_VELO
    radius = hypot(state.x + state.tx * to_middle, state.y + state.ty * to_middle)
    if radius < s.min_radius or abs(state.tx) > s.max_tx or abs(state.ty) > s.max_ty:
        return None
    windows = [window(state, hits, layer, tables, s) for layer in range(4)]
    best: tuple[float, tuple[float, float, float], tuple[Hit, ...]] | None = None
    for layers in ((0, 2, 1, 3), (3, 1, 2, 0)):
        if best is not None and best[0] <= s.three_hits_penalty:
            break
        for chosen in candidates(windows, layers, s):
            fit = fit_kink(chosen)
            quality = fit[0] + (s.three_hits_penalty if len(chosen) == 3 else 0.0)
            if fit[0] < s.max_search_chi2 and (best is None or quality < best[0]):
                best = quality, fit, chosen
    if best is None:
        return None
    quality, (_, u_kink, slope), chosen = best
    chi2, qop, x, tx = fit_momentum(state, chosen, u_kink, slope, bending_power(state, tables), polarity)
    if chi2 > s.max_chi2:
        return None
    z_last = max(hit.z for hit in chosen)
    return UtTrack(state.number, chosen, quality, chi2, qop, x, z_last, tx)


def select(tracks: Sequence[UtTrack], s: Settings) -> list[UtTrack]:
    """The tracks of an event that share few hits with better ones."""
    rank = {track.velo_track: (_coarse(track.quality), track.velo_track) for track in tracks}
    owner: dict[int, int] = {}
    for track in tracks:
        for hit in track.hits:
            if hit.number not in owner or rank[track.velo_track] < rank[owner[hit.number]]:
                owner[hit.number] = track.velo_track
    return [
        track
        for track in tracks
        if sum(owner[hit.number] != track.velo_track for hit in track.hits) <= s.max_shared_hits
    ]


def _coarse(quality: float) -> int:
    """The upper half of a float's bits."""
    return int(np.float32(quality).view(np.uint32)) >> 16


def velo_ut_tracks(
    states: Mapping[str, NDArray[np.float32]],
    backward: NDArray[np.uint8],
    hits: OracleHits,
    tables: UtTables,
    polarity: float,
    s: Settings = Settings(),
) -> list[UtTrack]:
    """The VELO-UT tracks of an event; `states` are x, y, tx, ty of its VELO tracks."""
    found = []
    for number in range(len(backward)):
        state = State(number, *(float(states[name][number]) for name in ("x", "y", "tx", "ty")))
        track = None if backward[number] else best_continuation(state, hits, tables, polarity, s)
        if track is not None:
            found.append(track)
    return select(found, s)
