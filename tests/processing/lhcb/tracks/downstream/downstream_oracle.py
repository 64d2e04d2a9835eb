"""The search for downstream tracks in double precision, seed by seed (docs/physics/downstream-tracks.md)."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from hltnode.processing.lhcb.parametrisation.parameters import LongTrackParameters
from hltnode.processing.lhcb.parametrisation.tracks import Line
from hltnode.processing.lhcb.tracks.downstream.ghost_network import DownstreamNetwork, inputs_of
from hltnode.processing.lhcb.tracks.downstream.search_ut import search_ut

CUBIC = -0.00028
Z_END, Z_REFERENCE, Z_UT = 9410.0, 8520.0, 2642.0
DX_DY = (0.0, 0.0874887, -0.0874887, 0.0)
NO_HIT = 0xFFFF
LAYER_BORDERS = (2350.0, 2485.0, 2620.0)
CUTS: Mapping[str, float] = {constant.name: float(constant.value) for constant in search_ut.constants}
MAGNET_ERROR, MAGNET_ERROR_OF_KINK = 0.6, 7.0
Y_ERROR, Y_ERROR_OF_KINK = 5.0, 20.0
STEREO_ERROR = 0.2


@dataclass(frozen=True)
class Hits:
    """The UT hits of an event: f64[n]; `layer` i64[n]; `used` bool[n]: on a long track."""

    x: NDArray[Any]
    z: NDArray[Any]
    y_begin: NDArray[Any]
    y_end: NDArray[Any]
    layer: NDArray[Any]
    used: NDArray[Any]

    @classmethod
    def of(cls, columns: Mapping[str, NDArray[Any]], on_long_tracks: NDArray[Any]) -> Hits:
        """From the columns of ut_hits, and the UT hits of long tracks."""
        x, z, y_begin, y_end = (columns[name].astype(float) for name in ("x", "z", "y_begin", "y_end"))
        used = np.isin(np.arange(len(x)), on_long_tracks[on_long_tracks != NO_HIT])
        return cls(x, z, y_begin, y_end, np.searchsorted(LAYER_BORDERS, z, side="right"), used)


@dataclass(frozen=True)
class Seed:
    """A seed at the reference plane."""

    x: float
    tx: float
    y: float
    ty: float

    @classmethod
    def of(cls, x: float, y: float, tx: float, ty: float, curvature: float) -> Seed:
        """From its state at the end of the SciFi."""
        d = Z_END - Z_REFERENCE
        slope = tx - curvature * (2 * d + 3 * CUBIC * d * d)
        return cls(x - slope * d - curvature * d * d * (1 + CUBIC * d), slope, y - ty * d, ty)


class Field:
    """The magnet between a line at Z_UT and the SciFi."""

    def __init__(self, parameters: LongTrackParameters) -> None:
        self.behind = parameters.behind_ut
        self.curve = float(parameters.in_ut.coefficients["curve"][0, 0, 0])
        self.polarity = parameters.polarity

    def value(self, name: str, kink: Any, tx: Any, ty: Any) -> Any:
        kink, tx, ty = np.broadcast_arrays(np.atleast_1d(kink), tx, ty)
        return self.behind.value(name, kink, tx, ty)

    def qop(self, kink: float, tx: float, ty: float) -> float:
        line = Line(x=np.zeros(1), y=np.zeros(1), tx=np.array([tx]), ty=np.array([ty]), z=Z_UT)
        return float(self.behind.momentum(line, np.array([kink]))[0]) * 1e-3 * self.polarity


@dataclass(frozen=True)
class Found:
    """The best candidate of a seed."""

    chi2: float
    hits: tuple[int, int, int, int]
    x: float
    tx: float
    y: float
    ty: float
    qop: float
    magnet_distance: float
    y_distance: float
    stereo_distance: float
    used_ut_hits: int


def search(seed: Seed, hits: Hits, field: Field, cuts: Mapping[str, float] = CUTS) -> Found | None:
    """The best candidate of a seed, None if there is none."""
    last = np.flatnonzero(hits.layer == 3)
    x, z = hits.x[last], hits.z[last]

    def kink_of(z_magnet: Any) -> tuple[Any, Any]:
        x_magnet = seed.x + seed.tx * (z_magnet - Z_REFERENCE)
        tx = (x_magnet - x) / (z_magnet - z)
        return tx, seed.tx - tx

    tx, kink = kink_of(np.full(len(x), field.behind.coefficients["z_magnet"][0, 0, 0]))
    tx, kink = kink_of(field.value("z_magnet", kink, tx, seed.ty))
    ty = seed.ty / (1 + kink * field.value("y_slope", kink, tx, seed.ty))
    y_at_ut = seed.y + ty * (Z_UT - Z_REFERENCE - kink * field.value("y_shift", kink, tx, seed.ty))
    y_window = cuts["y_window"] + cuts["y_window_of_kink"] * np.abs(kink)
    good = (np.abs(x - tx * z) < cuts["max_origin_x"]) & (np.abs(kink) > cuts["min_kink"])
    good &= np.abs(kink) < cuts["max_kink"]
    y = y_at_ut + ty * (z - Z_UT)
    good &= (hits.y_begin[last] - y_window < y) & (y < hits.y_end[last] + y_window)
    best: Found | None = None
    all_first = np.flatnonzero(hits.layer == 0)
    for i in np.flatnonzero(good):
        line = (float(tx[i]), float(kink[i]), float(ty[i]), float(y_at_ut[i]), float(y_window[i]))
        # Only hits that a wide window has are compared one by one.
        near = np.abs(x[i] + tx[i] * (hits.z[all_first] - z[i]) - hits.x[all_first]) < 50.0
        for first in all_first[near]:
            found = _with_first(seed, hits, field, cuts, int(last[i]), int(first), line)
            if found is not None and (best is None or found.chi2 < best.chi2):
                best = found
    return best


def _with_first(
    seed: Seed,
    hits: Hits,
    field: Field,
    cuts: Mapping[str, float],
    last: int,
    first: int,
    line: tuple[float, float, float, float, float],
) -> Found | None:
    tx0, kink, ty, y_at_ut, y_window = line

    def covers(hit: Any) -> Any:
        y = y_at_ut + ty * (hits.z[hit] - Z_UT)
        return (hits.y_begin[hit] - y_window < y) & (y < hits.y_end[hit] + y_window)

    bend = field.curve * kink
    x3, x0 = (hits.x[hit] - bend * (hits.z[hit] - Z_UT) ** 2 for hit in (last, first))
    window = cuts["x_window"] + cuts["x_window_of_kink"] * abs(kink)
    if abs(x3 + tx0 * (hits.z[first] - hits.z[last]) - x0) > window or not covers(first):
        return None
    tx = (x3 - x0) / (hits.z[last] - hits.z[first])
    x = x3 + tx * (Z_UT - hits.z[last])
    kink = seed.tx - tx
    z_magnet = field.value("z_magnet", kink, tx, seed.ty)[0]
    magnet = seed.x + seed.tx * (z_magnet - Z_REFERENCE) - x - tx * (z_magnet - Z_UT)
    magnet_error = MAGNET_ERROR + MAGNET_ERROR_OF_KINK * abs(kink)
    y_error = Y_ERROR + Y_ERROR_OF_KINK * abs(kink)

    def distance(layer: int) -> tuple[NDArray[Any], NDArray[Any]]:
        of_layer = np.flatnonzero(hits.layer == layer)
        dz = hits.z[of_layer] - Z_UT
        d = hits.x[of_layer] + DX_DY[layer] * (y_at_ut + ty * dz) - x - tx * dz - bend * dz**2
        near = (np.abs(d) < abs(DX_DY[layer]) * y_window) & covers(of_layer)
        return of_layer[near], d[near]

    (hits1, d1), (hits2, d2) = distance(1), distance(2)
    if len(d1) == 0 or len(d2) == 0:
        return None
    stereo = d1[:, None] + d2[None, :]
    dy = (d2[None, :] - d1[:, None]) / (2 * DX_DY[1])
    chi2 = (magnet / magnet_error) ** 2 + (dy / y_error) ** 2 + (stereo / STEREO_ERROR) ** 2
    n_used = hits.used[[first, last]].sum() + hits.used[hits1][:, None].astype(int) + hits.used[hits2][None, :]
    chi2 = chi2 + cuts["used_hit_penalty"] * n_used
    chi2 = np.where((np.abs(stereo) < cuts["stereo_window"]) & (n_used <= cuts["max_used_ut_hits"]), chi2, np.inf)
    for index in np.argwhere(np.isfinite(chi2)):
        on_line = [first, hits1[index[0]], hits2[index[1]], last]
        y = y_at_ut + dy[tuple(index)] + ty * (hits.z[on_line] - Z_UT)
        margin = cuts["y_margin"]
        if not ((hits.y_begin[on_line] - margin < y) & (y < hits.y_end[on_line] + margin)).all():
            chi2[tuple(index)] = np.inf
    i, k = np.unravel_index(int(chi2.argmin()), chi2.shape)
    if not chi2[i, k] < cuts["max_chi2"]:
        return None
    return Found(
        chi2=float(chi2[i, k]),
        hits=(first, int(hits1[i]), int(hits2[k]), last),
        x=float(x),
        tx=float(tx),
        y=float(y_at_ut + dy[i, k]),
        ty=float(ty),
        qop=field.qop(float(kink), float(tx), float(ty)),
        magnet_distance=float(magnet),
        y_distance=float(dy[i, k]),
        stereo_distance=float(stereo[i, k]),
        used_ut_hits=int(n_used[i, k]),
    )


def kept_tracks(
    seeds: Mapping[str, NDArray[Any]],
    candidates: Mapping[str, NDArray[Any]],
    network: DownstreamNetwork,
    limits: tuple[float, int, int] = (0.6, 1, 3),
) -> list[int]:
    """The seeds that become tracks: no ghosts, and at most some hits of better ones. limits: of the ghost probability,
    of common UT hits, of common SciFi hits."""
    columns = {**candidates, "seed_quality": seeds["quality"], "hit_count": seeds["hit_count"]}
    with np.errstate(invalid="ignore"):
        probability = network.response(inputs_of(columns)).astype(np.float32)
    good = np.flatnonzero((candidates["found"] != 0) & (probability <= limits[0]))
    # The kernel compares the upper 16 bits of the probability, then the number of the seed.
    rank = {int(i): (int(probability[i].view(np.uint32)) >> 16, int(i)) for i in good}
    owner: dict[tuple[str, int], tuple[int, int]] = {}

    def hits_of(i: int) -> list[tuple[str, int]]:
        in_scifi = [("scifi", int(hit)) for hit in seeds["hits"][i] if hit != NO_HIT]
        return [*(("ut", int(hit)) for hit in candidates["ut_hits"][i]), *in_scifi]

    for i, of_seed in rank.items():
        for hit in hits_of(i):
            owner[hit] = min(owner.get(hit, of_seed), of_seed)
    kept = []
    for i, of_seed in rank.items():
        shared = [kind for kind, number in hits_of(i) if owner[kind, number] != of_seed]
        if shared.count("ut") <= limits[1] and shared.count("scifi") <= limits[2]:
            kept.append(i)
    return kept
