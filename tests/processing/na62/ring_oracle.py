"""Fits and search of rings in float64, with NumPy and independent of the kernels."""

from __future__ import annotations

from dataclasses import dataclass, field

import numpy as np
from numpy.typing import NDArray

from hltnode.processing.na62.rich.search_rings import search_rings

Floats = NDArray[np.float64]
CUTS = {constant.name: float(constant.value) for constant in search_rings.constants}
AXES = [(1, 0), (-1, 0), (0, 1), (0, -1), (1, 1), (-1, -1), (1, -1), (-1, 1)]


def algebraic_fit(x: Floats, y: Floats, method: int) -> tuple[float, float, float]:
    """Centre and radius. 0: linear least squares; 1: Taubin; 2: Pratt, both as generalised eigenvalue problems.

    The circle a z + b x + c y + d = 0 with z = x^2 + y^2 minimises the mean of squares of the left side, with the
    constraint of Taubin, 4 a^2 mean(z) + 4 a b mean(x) + 4 a c mean(y) + b^2 + c^2 = 1, or of Pratt,
    b^2 + c^2 - 4 a d = 1 (N. Chernov, "Circular and Linear Regression", CRC Press 2010, sections 5.5 to 5.8).
    """
    mx, my = x.mean(), y.mean()
    u, v = x - mx, y - my
    unit = np.sqrt((u * u + v * v).mean())
    u, v = u / unit, v / unit
    z = u * u + v * v
    if method == 0:
        (b, c, d), *_ = np.linalg.lstsq(np.column_stack([u, v, np.ones_like(u)]), -z, rcond=None)
        a = 1.0
    else:
        moments = np.column_stack([z, u, v, np.ones_like(u)])
        matrix = moments.T @ moments / len(u)
        if method == 1:
            constraint = np.array([[4 * z.mean(), 0, 0, 0], [0, 1, 0, 0], [0, 0, 1, 0], [0, 0, 0, 0.0]])
        else:
            constraint = np.array([[0, 0, 0, -2.0], [0, 1, 0, 0], [0, 0, 1, 0], [-2.0, 0, 0, 0]])
        # matrix a = eta constraint a; 1 / eta are the eigenvalues of the inverse times the constraint.
        values, vectors = np.linalg.eig(np.linalg.pinv(matrix, rcond=1e-14) @ constraint)
        best = int(np.argmax(values.real))
        a, b, c, d = vectors[:, best].real
    x0, y0 = -b / (2 * a), -c / (2 * a)
    radius = np.sqrt(x0 * x0 + y0 * y0 - d / a)
    return mx + unit * x0, my + unit * y0, unit * radius


def taubin_by_newton(x: Floats, y: Floats) -> tuple[tuple[float, float, float], float, float]:
    """Taubin's fit of any points: the root that Newton's method finds in five steps from 0, as in the kernels.

    Returns the circle, how far the last step is below the greatest one that counts as converged, and the determinant.
    """
    u, v = x - x.mean(), y - y.mean()
    square = (u * u + v * v).mean()
    unit = np.sqrt(square)
    u, v = u / unit, v / unit
    z = u * u + v * v
    xx, xy, yy, xz, yz, zz = (float(p.mean()) for p in (u * u, u * v, v * v, u * z, v * z, z * z))
    spread, variance = xx * yy - xy * xy, zz - 1.0
    a0 = xz * (xz * yy - yz * xy) + yz * (yz * xx - xz * xy) - variance * spread
    polynomial = np.polynomial.Polynomial([a0, variance + 4.0 * spread - xz * xz - yz * yz, -3.0 - zz, 4.0])
    root = last_step = 0.0
    for _ in range(5):
        before = root
        root = max(root - float(polynomial(root)) / float(polynomial.deriv()(root)), 0.0)
        last_step = abs(root - before)
    determinant = root * root - root + spread
    twice = 2.0 * determinant if determinant > 0 else 1.0
    a, b = (xz * (yy - root) - yz * xy) / twice, (yz * (xx - root) - xz * xy) / twice
    circle = (x.mean() + unit * a, y.mean() + unit * b, unit * float(np.sqrt(a * a + b * b + 1.0)))
    return circle, 1e-3 * spread + 1e-5 - last_step, determinant


@dataclass(slots=True)
class Search:
    """The search of one event. margin: the least relative distance of a decision from its threshold."""

    x: Floats
    y: Floats
    margin: float = np.inf
    rings: list[tuple[float, ...]] = field(default_factory=list)

    def close_to(self, values: Floats | float, threshold: float, scale: float) -> None:
        """Keep the least distance of some values from a threshold."""
        away = np.abs(np.atleast_1d(np.asarray(values, float)) - threshold) / scale
        if away.size:
            self.margin = min(self.margin, float(away.min()))

    def near(self, ring: tuple[float, ...], window: float, x: Floats, y: Floats) -> NDArray[np.bool_]:
        distance = np.abs(np.hypot(x - ring[0], y - ring[1]) - ring[2])
        self.close_to(distance, window, 100.0)
        return distance <= window

    def fitted(self, x: Floats, y: Floats) -> tuple[float, ...] | None:
        """Centre, radius, hits, sum of squares."""
        if len(x) < 3:
            return None
        u, v = x - x.mean(), y - y.mean()
        mean_square = (u * u + v * v).mean()
        spread = ((u * u).mean() * (v * v).mean() - (u * v).mean() ** 2) / max(mean_square, 1e-12) ** 2
        self.close_to(spread, CUTS["min_spread"], 1.0)
        if mean_square < 1e-3 or spread < CUTS["min_spread"]:
            return None
        ring, below_greatest_step, determinant = taubin_by_newton(x, y)
        self.close_to(below_greatest_step, 0.0, 1.0)
        self.close_to(determinant, 1e-6, 1.0)
        if below_greatest_step < 0 or determinant < 1e-6:
            return None
        beyond = ((x - ring[0]) ** 2 + (y - ring[1]) ** 2 - ring[2] ** 2) / (2.0 * ring[2])
        return (*ring, float(len(x)), float((beyond**2).sum()))

    def of_triplet(self, x: Floats, y: Floats, axis: tuple[int, int], skipped: int) -> tuple[float, ...] | None:
        along = (x * axis[0] + y * axis[1]) / np.hypot(*axis)
        allowed = np.ones(len(x), bool)
        chosen: list[int] = []
        for i in range(3 + skipped):
            if not allowed.any():
                return None
            best = int(np.argmax(np.where(allowed, along, -np.inf)))
            if i < skipped:
                allowed[best] = False
                continue
            chosen.append(best)
            distance = np.hypot(x - x[best], y - y[best])
            self.close_to(distance, CUTS["min_distance"], 100.0)
            allowed &= distance >= CUTS["min_distance"]
        a, b, c = (np.array([x[i], y[i]]) for i in chosen)
        da, db, dc = (np.hypot(x - p[0], y - p[1]) for p in (a, b, c))
        products = np.array([np.hypot(*(a - b)) * dc, np.hypot(*(a - c)) * db, np.hypot(*(b - c)) * da])
        defect = products.sum(0) / products.max(0) - 2.0
        self.close_to(defect, CUTS["tolerance"], 0.1)
        taken = defect <= CUTS["tolerance"]
        ring = self.fitted(x[taken], y[taken])
        for i in range(int(CUTS["refits"])):
            if ring is None:
                return None
            taken = self.near(ring, CUTS["first_window"] if i == 0 else CUTS["window"], x, y)
            ring = self.fitted(x[taken], y[taken])
        return ring

    def is_good(self, ring: tuple[float, ...] | None) -> bool:
        if ring is None:
            return False
        _, _, radius, n, squares = ring
        self.close_to(np.array([radius]), CUTS["min_radius"], 100.0)
        self.close_to(np.array([radius]), CUTS["max_radius"], 100.0)
        self.close_to(squares / n, CUTS["max_mean_square"], 100.0)
        return (
            n >= CUTS["min_hits"]
            and CUTS["min_radius"] <= radius <= CUTS["max_radius"]
            and squares <= CUTS["max_mean_square"] * n
        )

    def is_new(self, ring: tuple[float, ...], others: list[tuple[float, ...]]) -> bool:
        apart = [float(np.linalg.norm(np.subtract(ring[:3], other[:3]))) for other in others]
        self.close_to(np.array(apart), CUTS["merge_distance"], 10.0)
        return all(distance >= CUTS["merge_distance"] for distance in apart)

    def take_best(self, good: list[tuple[float, ...]]) -> tuple[float, ...]:
        """The ring with most hits, then with the least sum of squares; it is no longer in the list."""
        most = max(ring[3] for ring in good)
        of_most = sorted((ring for ring in good if ring[3] == most), key=lambda ring: ring[4])
        for other in of_most[1:]:
            if max(abs(np.subtract(other, of_most[0]))) > 1e-6:
                self.close_to(other[4], of_most[0][4], 1.0)
        good.remove(of_most[0])
        return of_most[0]

    def run(self) -> list[tuple[float, ...]]:
        """Rings as (x, y, radius, hits, sum of squares)."""
        x, y, skipped = self.x, self.y, 0
        while len(x) >= CUTS["min_hits"]:
            of_axes = [self.of_triplet(x, y, axis, skipped) for axis in AXES[: int(CUTS["triplets"])]]
            good = [ring for ring in of_axes if ring is not None and self.is_good(ring)]
            if not good:
                skipped += 1
                if skipped > CUTS["max_skipped"]:
                    break
                continue
            skipped = 0
            best = self.take_best(good)
            if self.is_new(best, self.rings):
                self.rings.append(best)
            free = ~self.near(best, CUTS["window"], x, y)
            x, y = x[free], y[free]
        last: list[tuple[float, ...]] = []
        for ring in self.rings:
            taken = self.near(ring, CUTS["window"], self.x, self.y)
            refitted = self.fitted(self.x[taken], self.y[taken])
            if refitted is not None and self.is_good(refitted) and self.is_new(refitted, last):
                last.append(refitted)
        return last
