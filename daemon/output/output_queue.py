"""Limit on gathered batches that are not acknowledged yet, in bytes and in batches."""

import threading

MAX_BATCHES = 8
"""A limit in bytes is not enough: feeders keep a whole batch until its acknowledgement, even if no event is kept."""


class OutputQueue:
    """Counts gathered batches until they are acknowledged; any thread.

    Args:
        max_bytes: no batch is gathered above this limit; the last batch may exceed it.
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
        """Wait until another batch may be gathered."""
        with self._changed:
            while not self.has_room():
                self.is_full = True
                self._changed.wait()
            self.is_full = False

    def put(self, nbytes: int) -> None:
        """Count a gathered batch."""
        with self._changed:
            self.nbytes += nbytes
            self.batches += 1

    def take(self, nbytes: int) -> None:
        """Remove an acknowledged batch."""
        with self._changed:
            self.nbytes -= nbytes
            self.batches -= 1
            self._changed.notify_all()

    def lift(self) -> None:
        """Lift the limit: the node stops, and only the batches in its slots are left."""
        with self._changed:
            self._unlimited = True
            self._changed.notify_all()

    def has_room(self) -> bool:
        """Whether another batch may be gathered now."""
        return self._unlimited or (self.nbytes < self._max_bytes and self.batches < MAX_BATCHES)
