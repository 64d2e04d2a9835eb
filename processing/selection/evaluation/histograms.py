"""Fills histograms with NumPy; the counts equal those of the kernel of kernel_code/lines.py."""

from collections.abc import Iterator, Sequence

import numpy as np
from numpy.typing import NDArray

from hltnode.processing.selection.evaluation.lines import Columns, Evaluator, passes_words, pieces
from hltnode.processing.selection.expressions.nodes import Node
from hltnode.processing.selection.lines.histogram import RecordedHistogram, sample_limit


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
    event_words: Sequence[Node],
    accepted: NDArray[np.bool_],
    columns: Columns,
) -> Iterator[NDArray[np.uint32]]:
    """The contributions of a batch to the counters of all histograms, u32[counters], in parts to be added.

    event_words: words that identify an event for scalers. accepted: bool[events].
    """
    n_events = len(accepted)
    variables = [histogram.variable for histogram in histograms if histogram.variable is not None]
    roots = [root for histogram in histograms for root in (histogram.value, histogram.condition)]
    for events in pieces(variables, roots, columns, n_events):
        evaluator = Evaluator(columns, n_events, events)
        words = [evaluator.numbers(word) for word in event_words]
        counted = [_counted(histogram, evaluator, accepted, words) for histogram in histograms]
        yield np.concatenate(counted).astype(np.uint32)


def _counted(
    histogram: RecordedHistogram,
    evaluator: Evaluator,
    accepted: NDArray[np.bool_],
    words: Sequence[NDArray[np.uint32]],
) -> NDArray[np.int64]:
    looked_at = accepted if histogram.accepted else np.ones(evaluator.n_events, np.bool_)
    if (sample := sample_limit(histogram.prescale)) is not None:
        looked_at = looked_at & passes_words(*sample, words)
    values, true, false, event = evaluator.of_candidates(histogram.variable, histogram.value, histogram.condition)
    counts = np.bincount(places(values[true & looked_at[event]], histogram), minlength=histogram.shape.n_counts)
    counts[-1] += np.count_nonzero(~(true | false) & looked_at[event])
    return counts
