"""Which batches of requests are short enough for the thread of the request socket."""

import math

DIRECT_SECONDS = 250e-6
"""Longest batch that the thread of requests computes. Handing a batch to the back end and waking up again costs 0.1 to
0.2 ms; in a longer batch, the other threads of the back end win this time, and messages would wait too long."""
# The estimate grows by this factor with each batch that takes longer. The least times are those without interruption.
GROWTH = 1.25


class ShortBatches:
    """Estimates the time of an event in one thread from the fastest of the last batches with events of like size.

    Sizes are like if they have the same power of two: the time of small events says nothing about large ones. Without
    an estimate, no batch is short.
    """

    def __init__(self) -> None:
        self._seconds: dict[int, float] = {}
        """Of an event, by the power of two of its bytes."""

    def has(self, n_events: int, n_bytes: int) -> bool:
        """Whether a batch of this number of events, with bytes of all of them, is short."""
        return n_events * self._seconds.get(_size(n_events, n_bytes), math.inf) <= DIRECT_SECONDS

    def computed(self, n_events: int, n_bytes: int, seconds: float) -> None:
        """Note the time of a batch with events, as one thread needs it."""
        size = _size(n_events, n_bytes)
        self._seconds[size] = min(seconds / n_events, GROWTH * self._seconds.get(size, math.inf))


def _size(n_events: int, n_bytes: int) -> int:
    return (n_bytes // n_events).bit_length()
