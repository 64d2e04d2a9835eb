"""How much may lie between the gathering and the acknowledgement: bytes and batches."""

import threading

MAX_BATCHES = 8
"""A batch of which little is kept costs the node little, but its feeders keep all of it until it is acknowledged."""


class OutputQueue:
    """Counts what is gathered and not yet acknowledged; any thread.

    Args:
        max_bytes: above it nothing is gathered; the last batch may exceed it.
    """

    def __init__(self, max_bytes: int) -> None:
        self._max_bytes = max_bytes
        self._changed = threading.Condition()
        self._unlimited = False
        self.nbytes = 0
        self.batches = 0
        self.is_full = False
        """Whether a batch waits in its slot because the queue is full."""

    def wait_for_room(self) -> None:
        """Return when another batch may be gathered."""
        with self._changed:
            while not self._has_room():
                self.is_full = True
                self._changed.wait()
            self.is_full = False

    def put(self, nbytes: int) -> None:
        """A batch is gathered."""
        with self._changed:
            self.nbytes += nbytes
            self.batches += 1

    def take(self, nbytes: int) -> None:
        """A batch is acknowledged."""
        with self._changed:
            self.nbytes -= nbytes
            self.batches -= 1
            self._changed.notify_all()

    def lift(self) -> None:
        """There is room from now on: the node stops, and what is left in its slots is not much."""
        with self._changed:
            self._unlimited = True
            self._changed.notify_all()

    def _has_room(self) -> bool:
        return self._unlimited or (self.nbytes < self._max_bytes and self.batches < MAX_BATCHES)
