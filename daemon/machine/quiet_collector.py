"""Python's garbage collector, run at times when it delays no decision.

The automatic collector runs after every 700 new objects, in the thread that makes the last of them, and stops all
threads of Python meanwhile. A node makes objects at a steady rate, and nearly all of them are freed without the
collector. Only cycles need it. So memory stays bounded if it runs from time to time.
"""

import gc
from collections.abc import MutableMapping

from hltnode.daemon.common.vocabulary import CollectionMoment

IDLE_NS = 1_000_000_000
"""Shortest time between two collections of a node without work."""
LONGEST_NS = 60_000_000_000
"""A busy node collects after this time. It then holds the cycles of one minute: errors and ended connections."""


class QuietCollector:
    """Runs collections from `start` to `stop`, in the event loop. Only one per process.

    Args:
        counts: number of collections.
    """

    def __init__(self, now_ns: int, counts: MutableMapping[CollectionMoment, int]) -> None:
        self._collected_ns = now_ns
        self._counts = counts

    def start(self) -> None:
        """Leave all present objects out of later collections, and switch the automatic collector off."""
        gc.collect()
        gc.freeze()
        gc.disable()

    def tick(self, now_ns: int, *, is_idle: bool) -> None:
        """Collect if it is time. `is_idle`: the node has no MEP."""
        waited_ns = now_ns - self._collected_ns
        if waited_ns < (IDLE_NS if is_idle else LONGEST_NS):
            return
        # Objects that no collection has seen are in generation 0; without them there is nothing to collect.
        if gc.get_count()[0]:
            gc.collect()
            self._counts[CollectionMoment.IDLE if is_idle else CollectionMoment.DUE] += 1
        self._collected_ns = now_ns

    def stop(self) -> None:
        """Switch the automatic collector on again."""
        gc.unfreeze()
        gc.enable()
