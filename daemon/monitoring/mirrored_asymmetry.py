"""The sign of the asymmetry of two charges, where neither losses nor a shift of the detector can make it."""

import numpy as np
from numpy.typing import NDArray

MIN_COUNTS = 25
"""Bins with fewer entries are left out: logarithms of small numbers are biased."""
MIN_ASYMMETRY = 0.003
"""Smaller asymmetries show no sign. A shift by 1 mm makes a mirrored one of 0.2 % (docs/physics/charge-excess.md)."""
MIN_SIGNIFICANCE = 5.0
"""Standard deviations of an asymmetry that shows a sign."""

Counts = NDArray[np.unsignedinteger]


def shown_sign(positive: Counts, negative: Counts) -> int:
    """1 or -1 if both asymmetries of two histograms show this sign, else 0.

    Losses on one side make a plain asymmetry and no mirrored one; a shift makes a mirrored one and no plain one.
    """
    signs = {
        int(np.sign(asymmetry)) if abs(asymmetry) >= max(MIN_ASYMMETRY, MIN_SIGNIFICANCE * error) else 0
        for asymmetry, error in (plain_asymmetry(positive, negative), mirrored_asymmetry(positive, negative))
    }
    return signs.pop() if len(signs) == 1 else 0


def plain_asymmetry(positive: Counts, negative: Counts) -> tuple[float, float]:
    """(N+ - N-) / (N+ + N-) of all entries and its statistical error; (0, inf) without any."""
    first, second = int(positive.sum()), int(negative.sum())
    n = first + second
    return ((first - second) / n, n**-0.5) if n else (0.0, np.inf)


def mirrored_asymmetry(positive: Counts, negative: Counts) -> tuple[float, float]:
    """(N+ - N-) / (N+ + N-) and its statistical error, from histograms of both charges in x, symmetric about 0.

    A magnet bends positive particles to one side as it bends negative ones to the other. So a positive particle is as
    likely at x as a negative one at -x. In N+(x) N+(-x) / (N-(x) N-(-x)) the efficiencies at x and -x cancel.
    (0, inf) without a bin of enough entries.
    """
    half = len(positive) // 2
    sides = (positive[:half], positive[: half - 1 : -1], negative[:half], negative[: half - 1 : -1])
    counts = np.stack([side.astype(np.float64) for side in sides])
    counts = counts[:, counts.min(axis=0) >= MIN_COUNTS]
    if not counts.shape[1]:
        return 0.0, np.inf
    # The logarithm of N+ / N- is twice the asymmetry, and both sides have it.
    of_bins = 0.25 * np.log(counts[0] * counts[1] / (counts[2] * counts[3]))
    weights = 16.0 / (1.0 / counts).sum(axis=0)
    return float((of_bins * weights).sum() / weights.sum()), float(weights.sum() ** -0.5)
