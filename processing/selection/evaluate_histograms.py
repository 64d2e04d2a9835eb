"""Fills histograms with NumPy, as the kernel of code.py does: the same counts."""

from collections.abc import Iterator, Sequence
from typing import Any

import numpy as np
from numpy.typing import NDArray

from hltnode.processing.selection.evaluate import Evaluator, passes_words
from hltnode.processing.selection.histogram import RecordedHistogram, sample_limit


def places(values: NDArray[np.float32], histogram: RecordedHistogram) -> NDArray[np.int64]:
    """Number of the counter of each value (`count_value` in histograms.cuh)."""
    low, high, per_unit = histogram.limits
    bins = histogram.shape.bins
    inside = (values >= low) & (values < high)
    at = np.full(len(values), bins + 2, np.int64)
    at[values < low] = 0
    at[values >= high] = bins + 1
    at[inside] = 1 + np.minimum(((values[inside] - low) * per_unit).astype(np.int64), bins - 1)
    return at


def count(
    histograms: Sequence[RecordedHistogram],
    evaluator: Evaluator,
    accepted: NDArray[np.bool_],
    event_words: Sequence[NDArray[np.uint32]],
) -> NDArray[np.uint32]:
    """What the events of a batch add to the counters of all histograms, u32[counters].

    accepted: bool[events]. event_words: by what scalers know an event, u32[events] each.
    """
    with evaluator.unknown_uncounted():
        return np.concatenate(list(_each(histograms, evaluator, accepted, event_words))).astype(np.uint32)


def _each(
    histograms: Sequence[RecordedHistogram],
    evaluator: Evaluator,
    accepted: NDArray[np.bool_],
    event_words: Sequence[NDArray[np.uint32]],
) -> Iterator[NDArray[Any]]:
    for histogram in histograms:
        looked_at = accepted if histogram.accepted else np.ones(evaluator.n_events, np.bool_)
        if (sample := sample_limit(histogram.prescale)) is not None:
            looked_at = looked_at & passes_words(*sample, event_words)
        values, true, false, event = evaluator.of_candidates(histogram.variable, histogram.value, histogram.condition)
        counted = true & looked_at[event]
        counts = np.bincount(places(values[counted], histogram), minlength=histogram.shape.n_counts)
        counts[-1] += np.count_nonzero(~(true | false) & looked_at[event])
        yield counts
