"""The combinations that a search of the SciFi for VELO tracks meets: hits in windows, pairs of hits that point to the
track in the magnet, and triplets that continue them.

One entry per event: the mean over its VELO tracks, scaled to 3,500 SciFi hits by the power with which it grows.
"""

from dataclasses import dataclass
from typing import Self

import numpy as np
from numpy.typing import NDArray

from hltnode.processing.lhcb.geometry.scifi import SciFiHitPositions
from hltnode.processing.lhcb.offline.validation.likeness.long_particles import Lines
from hltnode.processing.lhcb.offline.validation.likeness.residuals import TruthHits
from hltnode.processing.lhcb.offline.validation.likeness.tracking import Values
from hltnode.processing.offline.arrays import Float64Array, Int64Array
from hltnode.processing.offline.sorting import ranges
from hltnode.protocol.lhcb.lhcb_id import in_2022_scheme
from hltnode.protocol.lhcb.truth_columns import McParticleColumns

_USUAL_HITS = 3500.0
_X_LAYERS = (0, 3, 4, 7, 8, 11)
_FIRST, _MIDDLE, _LAST = 0, 4, 8
# Slope that the magnet adds at the lowest momentum searched for, 5 GeV, around its middle (mm).
_BEND, _MAGNET_Z = 0.25, 5212.38
# Pairs point to the track within this distance there; triplets continue pairs within this one (mm).
_AT_MAGNET, _TRIPLET = 12.0, 0.5
# The curve of three hits: how much further than on a line the middle one is from the line's place at z = 0.
_CURVED = 1.00177513
_MOST_OWNERS = 3
_ZONE = 20_000.0


@dataclass(frozen=True, slots=True, eq=False)
class _Hits:
    """SciFi hits by zone and x: `key` f64 rises, `x`, `z` (at y = 0, of the layer), and `owners` i64[n, 3], -1 none."""

    key: Float64Array
    x: Float64Array
    owners: Int64Array
    layer_z: Float64Array

    @classmethod
    def of(cls, scifi: SciFiHitPositions, particles: McParticleColumns) -> Self:
        found = TruthHits.find(
            in_2022_scheme(particles.scifi_ids),
            particles.n_scifi_ids,
            np.ones(len(particles), dtype=bool),
            scifi.lhcb_id,
        )
        order = np.argsort(found.hit, kind="stable")
        hit, owner = found.hit[order], found.owner[order]
        number = np.arange(len(hit)) - np.searchsorted(hit, hit)
        owners = np.full((len(scifi.x), _MOST_OWNERS), -1)
        kept = number < _MOST_OWNERS
        owners[hit[kept], number[kept]] = owner[kept]
        layer_z = np.array([scifi.z[scifi.layer == layer].mean() for layer in range(12)])
        key = scifi.zone * _ZONE + scifi.x
        order = np.argsort(key, kind="stable")
        return cls(key[order], scifi.x[order], owners[order], layer_z)

    def between(self, zone: Int64Array, low: Float64Array, high: Float64Array) -> tuple[Int64Array, Int64Array]:
        """First row and number of the hits of zones between two x."""
        first, last = np.searchsorted(self.key, zone * _ZONE + low), np.searchsorted(self.key, zone * _ZONE + high)
        return first, np.maximum(last - first, 0)


def window_values(particles: McParticleColumns, line: Lines, scifi: SciFiHitPositions) -> Values:
    """Values for VELO tracks with 2 < eta < 5 of an event; `line`: coefficients of x(z) and y(z) of all particles."""
    eta = particles.values["eta"]
    wanted = (particles.values["has_velo"] != 0) & (eta > 2.0) & (eta < 5.0) & np.isfinite(line[0][:, 0])
    row = np.flatnonzero(wanted)
    if len(row) == 0 or len(np.unique(scifi.layer)) < 12:
        return {}
    hits = _Hits.of(scifi, particles)
    (x0, tx), (y0, ty) = (of_axis[row].T * np.array([[1.0], [1e-3]]) for of_axis in line)
    upper = (y0 + ty * hits.layer_z[_MIDDLE] > 0).astype(np.int64)
    windows = []
    for layer in _X_LAYERS:
        z = hits.layer_z[layer]
        middle, border = x0 + tx * z, _BEND * (z - _MAGNET_Z)
        windows.append(hits.between(2 * layer + upper, middle - border, middle + border))
    n_in_windows = sum(n for _, n in windows)
    track, first, last = _pairs(hits, windows[0], x0 + tx * _MAGNET_Z, upper, x0 + tx * hits.layer_z[_LAST])
    triplet, middle_hit = _middles(hits, first, last, upper[track])
    own, shared = _owners_in_common(hits.owners, first[triplet], middle_hit, last[triplet], row[track[triplet]])
    scale, n = len(scifi.x) / _USUAL_HITS, len(row)
    return {
        "window_hits": np.array([np.sum(n_in_windows) / n / scale]),
        "window_pairs": np.array([len(track) / n / scale**2]),
        "window_random_triplets": np.array([np.sum(~shared) / n / scale**3]),
        "window_other_triplets": np.array([np.sum(shared & ~own) / n / scale]),
    }


def _pairs(
    hits: _Hits,
    window: tuple[Int64Array, Int64Array],
    at_magnet: Float64Array,
    upper: Int64Array,
    at_last: Float64Array,
) -> tuple[Int64Array, Int64Array, Int64Array]:
    """Track, first and last hit of the pairs whose line passes the track in the magnet."""
    start, number = window
    track = np.repeat(np.arange(len(start)), number)
    first = ranges(start, number)
    z_first, z_last = hits.layer_z[_FIRST], hits.layer_z[_LAST]
    stretch = (z_last - _MAGNET_Z) / (z_first - _MAGNET_Z)
    expected = at_magnet[track] + (hits.x[first] - at_magnet[track]) * stretch
    border = _AT_MAGNET * (stretch - 1)
    begin, number = hits.between(2 * _LAST + upper[track], expected - border, expected + border)
    pair = np.repeat(np.arange(len(first)), number)
    last = ranges(begin, number)
    inside = np.abs(hits.x[last] - at_last[track[pair]]) < _BEND * (z_last - _MAGNET_Z)
    return track[pair][inside], first[pair][inside], last[inside]


def _middles(hits: _Hits, first: Int64Array, last: Int64Array, upper: Int64Array) -> tuple[Int64Array, Int64Array]:
    """Pair and middle hit of the triplets."""
    z_first, z_middle, z_last = (hits.layer_z[layer] for layer in (_FIRST, _MIDDLE, _LAST))
    slope = (hits.x[last] - hits.x[first]) / (z_last - z_first)
    expected = slope * z_middle + (hits.x[first] - slope * z_first) * _CURVED
    begin, number = hits.between(2 * _MIDDLE + upper, expected - _TRIPLET, expected + _TRIPLET)
    return np.repeat(np.arange(len(first)), number), ranges(begin, number)


def _owners_in_common(
    owners: Int64Array, first: Int64Array, middle: Int64Array, last: Int64Array, track: Int64Array
) -> tuple[NDArray[np.bool_], NDArray[np.bool_]]:
    """True where all three hits come from the track's particle; true where they come from one particle."""
    of_first = owners[first]
    common = of_first >= 0
    for others in (owners[middle], owners[last]):
        common &= (of_first[:, :, None] == others[:, None, :]).any(axis=2)
    own = common & (of_first == track[:, None])
    return np.any(own, axis=1), np.any(common, axis=1)
