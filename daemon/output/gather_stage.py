"""The gathering thread: copies the kept events of a computed batch out of its slot, and frees the slot.

So a hanging disk or a slow consumer occupies no slot until the output queue is full. Then batches stay in their slots,
credits run out and the feeders wait: no event is lost.
"""

import queue
import threading
import time
from collections.abc import Callable

from hltnode.daemon.common.threads import end_thread
from hltnode.daemon.compute.pipeline import ComputedBatch
from hltnode.daemon.event_building.stimuli_and_effects import Batch
from hltnode.daemon.output.gathering import DecidedBatch, EventGatherer, GatheredBatch
from hltnode.daemon.output.output_queue import OutputQueue
from hltnode.daemon.output.requests import Request


class GatherStage:
    """Gathers batches one after the other. Requests to the output pass through, to keep their order among the batches.

    Args:
        freed: called in the gathering thread with each batch whose slot is free, before the batch is handed on.
        hand_on: receives gathered batches and requests, in the gathering thread.
        crashed: called in the gathering thread with an unexpected exception.
        released: called in the gathering thread with the size of a gathered batch that was in no slot.
    """

    def __init__(
        self,
        gatherer: EventGatherer,
        room: OutputQueue,
        freed: Callable[[Batch], None],
        hand_on: Callable[[GatheredBatch | Request], None],
        crashed: Callable[[BaseException], None],
        *,
        released: Callable[[int], None] = lambda _nbytes: None,
        clock_ns: Callable[[], int] = time.monotonic_ns,
    ) -> None:
        self._gatherer = gatherer
        self._room = room
        self._freed = freed
        self._hand_on = hand_on
        self._crashed = crashed
        self._released = released
        self._clock_ns = clock_ns
        self._queue: queue.SimpleQueue[ComputedBatch | DecidedBatch | Request | None] = queue.SimpleQueue()
        self._thread = threading.Thread(target=self._run, name="hltnode-gather", daemon=True)

    def start(self) -> None:
        """Start the thread."""
        self._thread.start()

    def submit(self, item: ComputedBatch | DecidedBatch | Request) -> None:
        """Queue a batch or a request; any thread."""
        self._queue.put(item)

    def stop(self, timeout_s: float) -> bool:
        """Gather and hand on all queued items, and end the thread; False on timeout."""
        if self._thread.is_alive():
            self._room.lift()
        return end_thread(self._thread, self._queue, timeout_s)

    def _run(self) -> None:
        try:
            while (item := self._queue.get()) is not None:
                self._hand_on(self._gather(item) if isinstance(item, ComputedBatch | DecidedBatch) else item)
        except BaseException as error:
            self._crashed(error)
            raise

    def _gather(self, item: ComputedBatch | DecidedBatch) -> GatheredBatch:
        self._room.wait_for_room()
        gathered = self._gatherer.gather(item)
        batch = gathered.computed.batch
        if not batch.times.published_ns:
            batch.times.gathered_ns = self._clock_ns()
        self._room.put(gathered.nbytes)
        computed = item.computed if isinstance(item, DecidedBatch) else item
        if computed.held is None:
            self._freed(batch)
        else:
            self._released(computed.held_bytes)
        return gathered
