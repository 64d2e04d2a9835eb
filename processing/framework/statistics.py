"""Statistical errors of counted rates."""

import numpy as np
from numpy.typing import ArrayLike, NDArray

ONE_SIGMA = 1.0
"""Half the width of a normal distribution's central 68.27 % in standard deviations: intervals are "one sigma"."""


def wilson_interval(
    passed: ArrayLike, total: ArrayLike, z: float = ONE_SIGMA
) -> tuple[NDArray[np.float64], NDArray[np.float64]]:
    """Lower and upper end of the Wilson score interval of passed / total; nan if total is 0.

    z = 1 gives 68.3 % confidence. E. B. Wilson, J. Am. Stat. Assoc. 22 (1927) 209.
    """
    k, n = np.asarray(passed, dtype=np.float64), np.asarray(total, dtype=np.float64)
    safe = np.where(n > 0, n, np.nan)
    rate = k / safe
    centre = (rate + z**2 / (2 * safe)) / (1 + z**2 / safe)
    half = z / (1 + z**2 / safe) * np.sqrt(np.maximum(rate * (1 - rate), 0) / safe + z**2 / (4 * safe**2))
    # The interval must include the rate despite rounding.
    return np.clip(centre - half, 0, rate), np.clip(centre + half, rate, 1)
