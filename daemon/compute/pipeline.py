"""The compute thread: sealed slots go through their workspaces, so that transfers and kernels of several overlap.

One thread submits and polls, because CUDA streams belong to a thread. It never blocks on one batch while another one
could start. A back end that fails costs no event: the batch goes on with an error instead of results. The thread
changes no slot: it reports its progress, and the event builder applies it.
"""

import queue
import threading
import time
from collections.abc import Callable, Sequence
from dataclasses import dataclass

from hltnode.daemon.common.vocabulary import SlotState
from hltnode.daemon.compute.engine_interface import StageTimings, Workspace
from hltnode.daemon.event_building.stimuli_and_effects import Batch, MepRecord, SlotAdvanced
from hltnode.processing.framework.backends.interface import BackendError
from hltnode.processing.framework.batch import MepInBatch
from hltnode.processing.framework.flags import EventFlag

# How often a batch in flight is polled: small against the milliseconds that a batch takes.
POLL_SECONDS = 0.0005
# How often an idle thread updates `tick_ns`.
IDLE_SECONDS = 0.5


@dataclass(frozen=True, slots=True)
class ComputedBatch:
    """A batch that the back end has finished; ``error`` says why there are no results."""

    batch: Batch
    timings: StageTimings | None
    error: str | None


def flags_of(mep: MepRecord) -> EventFlag:
    """What is known of all events of a MEP before they are computed."""
    return EventFlag.INCOMPLETE if mep.missing else EventFlag(0)


class Pipeline:
    """Moves batches through the workspaces of their slots.

    Args:
        progress: called in the compute thread, twice per batch: RUN when the back end has it, DONE before `done`.
        done: called in the compute thread with each batch that is finished.
        crashed: called in the compute thread with an exception that is a defect; nothing moves afterwards.
    """

    def __init__(
        self,
        workspaces: Sequence[Workspace],
        progress: Callable[[SlotAdvanced], None],
        done: Callable[[ComputedBatch], None],
        crashed: Callable[[BaseException], None],
        *,
        clock_ns: Callable[[], int] = time.monotonic_ns,
    ) -> None:
        self._workspaces = workspaces
        self._progress = progress
        self._done = done
        self._crashed = crashed
        self._clock_ns = clock_ns
        self._queue: queue.SimpleQueue[Batch | None] = queue.SimpleQueue()
        self._in_flight: list[Batch] = []
        self._thread = threading.Thread(target=self._run, name="hltnode-pipeline", daemon=True)
        self.tick_ns = clock_ns()
        """Last time when the thread was idle or a batch moved on. A back end that hangs stops this clock."""

    def warm_up(self) -> None:
        """Run an empty batch through each workspace, before the thread starts.

        Raises BackendError.
        """
        for workspace in self._workspaces:
            workspace.seal(())
            workspace.submit()
            while not workspace.poll():
                time.sleep(POLL_SECONDS)

    def start(self) -> None:
        """Start the thread."""
        self.tick_ns = self._clock_ns()
        self._thread.start()

    def submit(self, batch: Batch) -> None:
        """Queue a sealed slot; any thread."""
        self._queue.put(batch)

    def stop(self, timeout_s: float) -> bool:
        """End the thread after what is in flight; False if it did not end in time (a hanging back end)."""
        if not self._thread.is_alive():
            return True
        self._queue.put(None)
        self._thread.join(timeout_s)
        return not self._thread.is_alive()

    def _run(self) -> None:
        try:
            while self._turn():
                pass
        except BaseException as error:
            self._crashed(error)
            raise

    def _turn(self) -> bool:
        try:
            batch = self._queue.get(timeout=POLL_SECONDS if self._in_flight else IDLE_SECONDS)
        except queue.Empty:
            if not self._in_flight:
                self.tick_ns = self._clock_ns()
        else:
            if batch is None:
                self._finish_in_flight()
                return False
            self._start(batch)
        self._poll()
        return True

    def _start(self, batch: Batch) -> None:
        workspace = self._workspaces[batch.slot]
        self.tick_ns = self._clock_ns()
        try:
            workspace.seal([MepInBatch(mep.n_events, mep.fragments, flags_of(mep)) for mep in batch.meps])
            workspace.submit()
        except BackendError as error:
            self._finish(batch, str(error))
        else:
            # Copy, kernels and copy back are one asynchronous job; from here on the host cannot tell them apart.
            self._progress(SlotAdvanced(batch.slot, SlotState.RUN))
            self._in_flight.append(batch)

    def _poll(self) -> None:
        for batch in self._in_flight.copy():
            try:
                if not self._workspaces[batch.slot].poll():
                    continue
                error = None
            except BackendError as failure:
                error = str(failure)
            self._in_flight.remove(batch)
            self._finish(batch, error)

    def _finish(self, batch: Batch, error: str | None) -> None:
        self.tick_ns = self._clock_ns()
        self._progress(SlotAdvanced(batch.slot, SlotState.DONE))
        timings = self._workspaces[batch.slot].timings if error is None else None
        self._done(ComputedBatch(batch, timings, error))

    def _finish_in_flight(self) -> None:
        while self._in_flight:
            self._poll()
            if self._in_flight:
                time.sleep(POLL_SECONDS)
