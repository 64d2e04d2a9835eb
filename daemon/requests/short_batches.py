"""Which batches of requests are short enough for the thread of the request socket."""

import math

DIRECT_SECONDS = 250e-6
"""Longest batch that the thread of requests computes. Handing a batch to the back end and waking up again costs 0.1 to
0.2 ms; in a longer batch, the other threads of the back end win this time, and messages would wait too long."""
# The estimate grows by this factor with each batch that takes longer. The least times are those without interruption.
GROWTH = 1.25


class ShortBatches:
    """Estimates the time of an event from the fastest of the last batches. Without one, no batch is short."""

    def __init__(self) -> None:
        self._seconds = math.inf
        """Of an event."""

    def has(self, n_events: int) -> bool:
        """Whether a batch of this number of events is short."""
        return n_events * self._seconds <= DIRECT_SECONDS

    def computed(self, n_events: int, seconds: float) -> None:
        """Note the time of a batch with events."""
        self._seconds = min(seconds / n_events, GROWTH * self._seconds)
