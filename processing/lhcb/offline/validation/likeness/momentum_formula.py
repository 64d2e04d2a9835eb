"""The momentum of a long track from its slopes before and behind the magnet, by a published polynomial.

Source: Allen (LHCb collaboration, Allen: A High-Level Trigger on GPUs for LHCb, Comput. Softw. Big Sci. 4 (2020) 7; the
coefficients are those of its forward tracking of 2023), fitted there to LHCb's field: a test of the built-in one.
"""

from collections.abc import Sequence

import numpy as np

from hltnode.processing.offline.arrays import Float64Array

SCIFI_Z = 8520.0
"""Where the state behind the magnet is taken, mm."""

# Coefficients of the powers of tx and ty, listed in _even and _mixed, for each power of the difference of the slopes.
_C0 = (-196.844, 153.068, 894.145, -285.105, -668.839, -2618.2, -1444.74, 1282.73, -71695.9, 112151.0)
_C1 = (
    0.357485, 91.8693, 762.6, -7010.38, 107143.0, -73.3455, 6333.35, -131468.0, -1362.57, 16409.6, 35454.9, -29148.2,
    963762.0, -616119.0,
)  # fmt: skip
_C2 = (42.1395, -363.764, 21116.1, -499.86, 8866.13, 29210.0, -128215.0, -14997.6, -661386.0, -435069.0)
_C3 = (
    -0.686029, 144.75, 824.714, 18226.9, -38902.5, 472.276, -37992.5, 758225.0, -7157.07, 340485.0, -3514150.0,
    -38132.5, -2680860.0, -704443.0,
)  # fmt: skip
_C4 = (28.2518, -1119.84, 45140.8, -608.331, 22295.7, 29399.7, -328097.0, 19857.7, -791094.0, -449718.0)


def q_over_p(line: Float64Array, curve: Float64Array, polarity: float) -> Float64Array:
    """Charge over momentum (1/MeV) of n tracks.

    `line` f64[4, n]: x, y (mm) at z = 0 and slopes tx, ty before the magnet; `curve` f64[4, n]: the same at SCIFI_Z
    behind it.
    """
    x, y, tx, ty = line
    x_behind, y_behind, tx_behind, ty_behind = curve
    at = (x_behind - x - tx_behind * SCIFI_Z) / (tx - tx_behind)
    before = (at * tx) ** 2 + (at * ty) ** 2 + at**2
    behind = (x_behind - x - at * tx) ** 2 + (y_behind - y - at * ty) ** 2 + (SCIFI_Z - at) ** 2
    length = 1e-3 * np.sqrt(before + behind)
    bend = tx_behind / np.sqrt(1 + tx_behind**2 + ty_behind**2) - tx / np.sqrt(1 + tx**2 + ty**2)
    even, mixed = _even(tx, ty), _mixed(tx, ty)
    kick = sum(
        _sum(c, powers) * bend**n
        for n, (c, powers) in enumerate(((_C0, even), (_C1, mixed), (_C2, even), (_C3, mixed), (_C4, even)))
    )
    found: Float64Array = bend / (polarity * length * np.sqrt(1 - ty**2) * kick)
    return found


def _sum(coefficients: Sequence[float], powers: Sequence[Float64Array]) -> Float64Array:
    total: Float64Array = np.einsum("i,i...->...", np.array(coefficients), np.stack(powers))
    return total


def _even(x: Float64Array, y: Float64Array) -> tuple[Float64Array, ...]:
    return (
        np.ones_like(x), x**2, x**4, y**2, y**4, x**2 * y**2, x**6, y**5, x**4 * y**2, x**2 * y**4,
    )  # fmt: skip


def _mixed(x: Float64Array, y: Float64Array) -> tuple[Float64Array, ...]:
    return (
        np.ones_like(x), x, x**3, x**5, x**7, y**2, y**4, y**6, x * y**2, x * y**4, x * y**6, x**3 * y**2, x**3 * y**4,
        x**5 * y**2,
    )  # fmt: skip
