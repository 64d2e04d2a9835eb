"""Numbers of two parts of a decay as expressions: mass, momentum, vertex, flight (docs/physics/composites.md).

All parts are straight lines: a track from its state at the beam line, or a flight along the momentum of a vertex. Sums
and differences avoid the subtraction of nearly equal numbers, because every operation is single precision.
"""

from dataclasses import dataclass
from functools import cached_property
from typing import Any, NamedTuple

from hltnode.processing.selection.errors import LineError
from hltnode.processing.selection.expressions.functions import sqrt
from hltnode.processing.selection.expressions.units import Quantity, mm

Number = Any
"""An expression, or a number with its unit."""

_TRACK_FIELDS = ("x", "y", "z", "_c00", "_c11", "_c20", "_c31", "_c22", "_c33")
"""Position and its errors: downstream tracks have no errors, so they make no vertex."""
_NO_ERROR = 0.0 * mm * mm
_SMALLEST_VARIANCE = 1e-8 * mm * mm
"""Keeps the weights of two parts without errors finite."""


class Covariance(NamedTuple):
    """Of a position, mm²: 0 = x, 1 = y, 2 = z."""

    c00: Number
    c10: Number
    c11: Number
    c20: Number
    c21: Number
    c22: Number


class Point(NamedTuple):
    """A position in mm."""

    x: Number
    y: Number
    z: Number


def _has(candidate: Any, *fields: str) -> bool:
    return set(fields) <= set(dir(candidate))


def covariance_of(candidate: Any) -> Covariance | None:
    """The covariance of the position of a vertex, None without one."""
    names = tuple(f"_{name}" for name in Covariance._fields)
    return Covariance(*(getattr(candidate, name) for name in names)) if _has(candidate, *names) else None


class Part:
    """One part of a decay: a straight line with a momentum, and its mass under a hypothesis.

    mass: MeV, or a function of the candidate. Raises LineError for candidates without a momentum.
    """

    def __init__(self, candidate: Any, mass: Any) -> None:
        self.candidate = c = candidate
        self.mass = mass(c) if callable(mass) else mass
        if not isinstance(self.mass, Quantity) and not hasattr(self.mass, "node"):
            raise LineError(f"a mass is a number in MeV or a field of the candidate, not {mass!r}")
        self.is_track = _has(c, "qop", "tx", "ty", *_TRACK_FIELDS)
        if self.is_track:
            self.tx, self.ty = c.tx, c.ty
            self.pz = 1.0 / (abs(c.qop) * sqrt(1.0 + c.tx * c.tx + c.ty * c.ty))
            self.px, self.py = self.pz * c.tx, self.pz * c.ty
        elif _has(c, "px", "py", "pz", "x", "y", "z"):
            self.px, self.py, self.pz = c.px, c.py, c.pz
            self.tx, self.ty = c.px / c.pz, c.py / c.pz
        else:
            raise LineError(f"{c._input.name} have no position and momentum, so they make no composite")
        self.x, self.y, self.z = c.x, c.y, c.z

    def at(self, z: Number) -> tuple[Number, Number]:
        """x and y at z, mm."""
        return self.x + (z - self.z) * self.tx, self.y + (z - self.z) * self.ty

    def variances_at(self, z: Number) -> tuple[Number, Number]:
        """Variances of x and y at z, mm². The flight of a vertex has the errors of its position alone."""
        c = self.candidate
        if self.is_track:
            dz = z - self.z
            return (
                c._c00 + dz * (2.0 * c._c20 + dz * c._c22),
                c._c11 + dz * (2.0 * c._c31 + dz * c._c33),
            )
        covariance = covariance_of(c)
        if covariance is None:
            return _NO_ERROR, _NO_ERROR
        return (
            covariance.c00 + self.tx * (self.tx * covariance.c22 - 2.0 * covariance.c20),
            covariance.c11 + self.ty * (self.ty * covariance.c22 - 2.0 * covariance.c21),
        )

    @property
    def has_errors(self) -> bool:
        """Whether the errors of its line are known."""
        return self.is_track or covariance_of(self.candidate) is not None

    @cached_property
    def p2(self) -> Number:
        """Squared momentum, MeV²."""
        return self.px * self.px + self.py * self.py + self.pz * self.pz


@dataclass(frozen=True)
class Combined:
    """Two parts together: the names that `where` of a composite may use.

    decays_at_first: the vertex of the first part is that of the decay; otherwise both are lines that meet there.

    Raises LineError for a decay at the vertex of a track.
    """

    first: Part
    second: Part
    decays_at_first: bool

    def __post_init__(self) -> None:
        if self.decays_at_first and self.first.is_track:
            raise LineError(f"decays_at_first: {self.first.candidate._input.name} have no vertex")

    # --- momentum -----------------------------------------------------------------------------------------------------

    @cached_property
    def px(self) -> Number:
        """MeV, like py, pz, pt and p."""
        return self.first.px + self.second.px

    @cached_property
    def py(self) -> Number:
        """MeV."""
        return self.first.py + self.second.py

    @cached_property
    def pz(self) -> Number:
        """MeV."""
        return self.first.pz + self.second.pz

    @cached_property
    def pt(self) -> Number:
        """Transverse momentum, MeV."""
        return sqrt(self.px * self.px + self.py * self.py)

    @cached_property
    def p(self) -> Number:
        """Momentum, MeV."""
        return sqrt(self.px * self.px + self.py * self.py + self.pz * self.pz)

    @cached_property
    def mass(self) -> Number:
        """Invariant mass, MeV. E_a E_b - p_a.p_b is the sum of (m_a² p_b² + m_b² (p_a² + m_a²)) / (E_a E_b + p_a p_b)
        and |p_a x p_b|² / (p_a p_b + p_a.p_b)."""
        a, b = self.first, self.second
        cx, cy, cz = a.py * b.pz - a.pz * b.py, a.pz * b.px - a.px * b.pz, a.px * b.py - a.py * b.px
        scalar = a.px * b.px + a.py * b.py + a.pz * b.pz
        product = sqrt(a.p2) * sqrt(b.p2)
        ma2, mb2 = a.mass * a.mass, b.mass * b.mass
        energies = sqrt(a.p2 + ma2) * sqrt(b.p2 + mb2)
        at_rest = (ma2 * (b.p2 + mb2) + mb2 * a.p2) / (energies + product)
        # |p_a x p_b|² would exceed single precision at high momentum: each component is divided first.
        scale = sqrt(product + scalar)
        opening = (cx / scale) ** 2 + (cy / scale) ** 2 + (cz / scale) ** 2
        return sqrt(ma2 + mb2 + 2.0 * (at_rest + opening))

    # --- vertex -------------------------------------------------------------------------------------------------------

    @cached_property
    def _approach(self) -> tuple[Number, Number]:
        """z at which both lines are closest (mean of both points), and their distance, mm."""
        a, b = self.first, self.second
        dtx, dty = a.tx - b.tx, a.ty - b.ty
        cx, cy, cz = dty, -dtx, a.ty * dtx - a.tx * dty
        c2 = cx * cx + cy * cy + cz * cz
        ax, ay = a.at(0.0 * mm)
        bx, by = b.at(0.0 * mm)
        dx, dy = bx - ax, by - ay
        of_a = dy * cx - dx * cy + (dx * b.ty - dy * b.tx) * cz
        of_b = dy * cx - dx * cy + (dx * a.ty - dy * a.tx) * cz
        return 0.5 * (of_a + of_b) / c2, abs(dx * cx + dy * cy) / sqrt(c2)

    @cached_property
    def doca(self) -> Number:
        """Smallest distance of both lines, or of the second line and the vertex of the first part, mm."""
        if not self.decays_at_first:
            return self._approach[1]
        b = self.second
        x, y = b.at(self.first.z)
        dx, dy = x - self.first.x, y - self.first.y
        cross = dx * b.ty - dy * b.tx
        return sqrt((dx * dx + dy * dy + cross * cross) / (1.0 + b.tx * b.tx + b.ty * b.ty))

    @cached_property
    def _fit(self) -> tuple[Point, Number, Covariance]:
        return self._updated() if self.decays_at_first else self._of_lines()

    @property
    def vertex(self) -> Point:
        """The position of the decay, mm."""
        return self._fit[0]

    @property
    def chi2(self) -> Number:
        """What the second part adds to the chi2 of the vertex: two degrees of freedom with a vertex of the first part,
        one for two lines."""
        return self._fit[1]

    @property
    def covariance(self) -> Covariance:
        """Of the position, mm²."""
        return self._fit[2]

    def _updated(self) -> tuple[Point, Number, Covariance]:
        """The vertex of the first part with the second line as another measurement: a step of a Kalman filter, which is
        the least-squares vertex of all straight lines. A vertex without errors stays; so does one whose second line has
        no errors, which adds no chi2."""
        a, b = self.first, self.second
        own = covariance_of(a.candidate)
        if own is not None and not b.has_errors:
            return Point(a.x, a.y, a.z), 0.0, own
        x, y = b.at(a.z)
        rx, ry = x - a.x, y - a.y
        vx, vy = b.variances_at(a.z)
        if own is None:
            none = Covariance(*[_NO_ERROR] * 6)
            return Point(a.x, a.y, a.z), rx * rx / vx + ry * ry / vy, none
        c = own
        # Rows of C H^T, with the rows (1, 0, -tx) and (0, 1, -ty) of H.
        x0, x1 = c.c00 - b.tx * c.c20, c.c10 - b.ty * c.c20
        y0, y1 = c.c10 - b.tx * c.c21, c.c11 - b.ty * c.c21
        z0, z1 = c.c20 - b.tx * c.c22, c.c21 - b.ty * c.c22
        s00, s10, s11 = x0 - b.tx * z0 + vx, y0 - b.ty * z0, y1 - b.ty * z1 + vy
        determinant = s00 * s11 - s10 * s10
        i00, i10, i11 = s11 / determinant, -s10 / determinant, s00 / determinant
        gains = [(u * i00 + v * i10, u * i10 + v * i11) for u, v in ((x0, x1), (y0, y1), (z0, z1))]
        (kx0, kx1), (ky0, ky1), (kz0, kz1) = gains
        chi2 = rx * (i00 * rx + 2.0 * i10 * ry) + i11 * ry * ry
        at = Point(*(of + k0 * rx + k1 * ry for of, (k0, k1) in zip((a.x, a.y, a.z), gains, strict=True)))
        return (
            at,
            chi2,
            Covariance(
                c.c00 - kx0 * x0 - kx1 * x1,
                c.c10 - kx0 * y0 - kx1 * y1,
                c.c11 - ky0 * y0 - ky1 * y1,
                c.c20 - kx0 * z0 - kx1 * z1,
                c.c21 - ky0 * z0 - ky1 * z1,
                c.c22 - kz0 * z0 - kz1 * z1,
            ),
        )

    def _of_lines(self) -> tuple[Point, Number, Covariance]:
        """The least-squares vertex of two lines with the errors at their closest approach, as for two tracks
        (secondary_vertices/vertex_fit.cuh), without the bend in the VELO."""
        a, b = self.first, self.second
        z = self._approach[0]
        (xa, ya), (xb, yb) = a.at(z), b.at(z)
        (vxa, vya), (vxb, vyb) = a.variances_at(z), b.variances_at(z)
        hx, hy = 1.0 / (vxa + vxb + _SMALLEST_VARIANCE), 1.0 / (vya + vyb + _SMALLEST_VARIANCE)
        dx, dy, dtx, dty = xa - xb, ya - yb, a.tx - b.tx, a.ty - b.ty
        var_z = 1.0 / (hx * dtx * dtx + hy * dty * dty)
        dz = -var_z * (hx * dtx * dx + hy * dty * dy)
        weight_x, weight_y = vxb * hx, vyb * hy
        gx, gy = b.tx + weight_x * dtx, b.ty + weight_y * dty
        at = Point(xb + weight_x * dx + dz * gx, yb + weight_y * dy + dz * gy, z + dz)
        rx, ry = dx + dz * dtx, dy + dz * dty
        covariance = Covariance(
            vxa * weight_x + gx * gx * var_z,
            gx * gy * var_z,
            vya * weight_y + gy * gy * var_z,
            gx * var_z,
            gy * var_z,
            var_z,
        )
        return at, hx * rx * rx + hy * ry * ry, covariance

    # --- flight from the primary vertex of the first part -------------------------------------------------------------

    @cached_property
    def _flight(self) -> Point:
        pv = self.first.candidate.pv
        return Point(self.vertex.x - pv.x, self.vertex.y - pv.y, self.vertex.z - pv.z)

    @cached_property
    def fd(self) -> Number:
        """Distance from the primary vertex of the first part, mm; NaN without one."""
        d = self._flight
        return sqrt(d.x * d.x + d.y * d.y + d.z * d.z)

    @cached_property
    def dira(self) -> Number:
        """Cosine of the angle between flight and momentum; NaN without a primary vertex."""
        d = self._flight
        return (d.x * self.px + d.y * self.py + d.z * self.pz) / (self.fd * self.p)

    @cached_property
    def ip(self) -> Number:
        """Distance of the line of flight and the primary vertex of the first part, mm; NaN without one."""
        d, sx, sy = self._flight, self.px / self.pz, self.py / self.pz
        dx, dy = d.x - d.z * sx, d.y - d.z * sy
        cross = dx * sy - dy * sx
        return sqrt((dx * dx + dy * dy + cross * cross) / (1.0 + sx * sx + sy * sy))
