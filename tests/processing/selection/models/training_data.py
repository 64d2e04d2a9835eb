"""Candidates with four features, some of them missing, and what a classifier may learn from them."""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

FEATURES = ("x", "pt", "vertex.z", "hits")


def candidates(rng: np.random.Generator, n: int) -> NDArray[np.float32]:
    """f32[n, 4]: every seventh x is missing, every fifth pt is 0, hits are whole numbers."""
    found = rng.normal(0.0, 1.0, (n, 4)).astype(np.float32)
    found[::7, 0] = np.nan
    found[::5, 1] = 0.0
    found[:, 3] = rng.integers(0, 20, n)
    return found


def labels(given: NDArray[np.float32]) -> NDArray[np.int64]:
    """Signal or not: depends on all features."""
    x, pt, z, hits = np.nan_to_num(given).T
    found: NDArray[np.int64] = ((x + pt * pt - z > 0.3) & (hits > 4)).astype(np.int64)
    return found


def lists(given: NDArray[np.float32]) -> list[list[float | None]]:
    """The numbers for a JSON file; None for NaN."""
    return [[None if np.isnan(value) else float(value) for value in row] for row in given]
