"""The lines by which tracks and true particles are drawn, through their hits; mm, f64[n, 3].

Between the UT and the SciFi tracker a track has no hits. The curve drawn there is the cubic that has its places and
slopes at both ends: it is no extrapolation through the field, and no one should measure on it.
"""

from collections.abc import Callable
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from hltnode.processing.lhcb.tracks.long.collections import Z_END_SCIFI
from hltnode.processing.offline.arrays import Float64Array

Z_MAGNET = (2700.0, 7700.0)
"""mm, behind the UT and before the SciFi tracker."""
Z_END_MUON = 18_900.0
"""mm, the middle of M5, to which muons are drawn."""
_MAGNET_POINTS = 14
LineInZ = Callable[[Float64Array], Float64Array]
"""A coordinate (mm) at given z (mm)."""
# A true particle whose angle is larger does not get far.
_MAX_SLOPE = 10.0


@dataclass(frozen=True, slots=True)
class Strips:
    """Hits that measure x at a known y: `x`, `z` at y = 0 in mm, and the slope dx/dy; f64[n] each."""

    x: Float64Array
    z: Float64Array
    dx_dy: Float64Array

    def at(self, hits: NDArray[np.int64], y_at: LineInZ) -> Float64Array:
        """Where some of them cross a particle, whose y is y_at(z); sorted by z."""
        z = self.z[hits]
        y = y_at(z)
        points = np.stack([self.x[hits] + self.dx_dy[hits] * y, y, z], axis=1)
        return points[np.argsort(z)]


def long_line(
    velo: Float64Array, ut: Float64Array, scifi: Float64Array, state: tuple[float, ...], is_muon: bool
) -> Float64Array:
    """The line of a long track: hits ascending in z, its state (x, y, tx, ty) at the end of the SciFi tracker."""
    x, y, tx, ty = state
    parts = [velo, ut]
    before = np.concatenate((velo, ut)) if len(ut) > 1 else velo
    first, last = before[-2], before[-1]
    slope = (last - first) / (last[2] - first[2])
    # A single pair of neighbouring hits would point anywhere: y is straight, so its slope is that of the whole track.
    slope[1] = (y - velo[0, 1]) / (Z_END_SCIFI - velo[0, 2])
    begin = last + slope * (Z_MAGNET[0] - last[2])
    end = np.array([x + tx * (Z_MAGNET[1] - Z_END_SCIFI), y + ty * (Z_MAGNET[1] - Z_END_SCIFI), Z_MAGNET[1]])
    parts += [_curve(begin, slope, end, np.array([tx, ty, 1.0])), scifi]
    behind = Z_END_MUON if is_muon else Z_END_SCIFI
    parts.append(np.array([[x + tx * (behind - Z_END_SCIFI), y + ty * (behind - Z_END_SCIFI), behind]]))
    return np.concatenate(parts)


def downstream_line(
    ut: Float64Array, scifi: Float64Array, begin: tuple[float, ...], end: tuple[float, ...]
) -> Float64Array:
    """The line of a track through UT and SciFi: hits ascending in z, its states (x, y, tx, ty, z) in the UT and at the
    end of the SciFi tracker."""
    ends, slopes = [], []
    for (x, y, tx, ty, z), at in ((begin, Z_MAGNET[0]), (end, Z_MAGNET[1])):
        ends.append(np.array([x + tx * (at - z), y + ty * (at - z), at]))
        slopes.append(np.array([tx, ty, 1.0]))
    last = np.array([[end[0], end[1], end[4]]])
    return np.concatenate([ut, _curve(ends[0], slopes[0], ends[1], slopes[1]), scifi, last])


def _curve(begin: Float64Array, begin_slope: Float64Array, end: Float64Array, end_slope: Float64Array) -> Float64Array:
    """The cubic with places and slopes (by z) at both ends, as points in steps of z."""
    t = np.linspace(0, 1, _MAGNET_POINTS)[:, None]
    dz = end[2] - begin[2]
    cubic: Float64Array = (
        (2 * t**3 - 3 * t**2 + 1) * begin
        + (t**3 - 2 * t**2 + t) * dz * begin_slope
        + (-2 * t**3 + 3 * t**2) * end
        + (t**3 - t**2) * dz * end_slope
    )
    return cubic


def particle_line(origin: Float64Array, velo: Float64Array, ut: Float64Array, scifi: Float64Array) -> Float64Array:
    """The line of a true particle: its origin, then its hits by z; those of the VELO in the direction of its flight."""
    if len(velo) and velo[:, 2].mean() < origin[2]:
        velo = velo[::-1]
    return np.concatenate((origin[None, :], velo, ut, scifi))


def straight_y(origin: Float64Array, eta: float, phi: float) -> LineInZ:
    """y(z) of a particle that flies straight in y, as charged ones nearly do in this magnet."""
    slope = np.clip(np.sin(phi) / np.sinh(eta) if eta else _MAX_SLOPE, -_MAX_SLOPE, _MAX_SLOPE)
    return straight(float(origin[1]), float(slope), float(origin[2]))


def straight(value: float, slope: float, at: float) -> LineInZ:
    """The line that has a value at some z."""
    return lambda z: value + slope * (z - at)
