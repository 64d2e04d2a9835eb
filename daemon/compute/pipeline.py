"""The compute thread: sends sealed slots through their workspaces; transfers and kernels of several slots overlap.

One thread submits batches and collects finished ones. It sleeps until a batch arrives or the back end reports an end.
It never blocks on one batch while another could start. In serial mode none could, so it computes batches itself where
the back end is a CPU: two hand-overs less. A failure of the back end loses no event: the batch continues
with an error instead of results. If the device is lost, the thread ends. Its batches stay in their slots,
unacknowledged, and in the journal as being computed, so the next session treats them as interrupted (interruptions.py).
The thread changes no slot: it reports its progress, and the event builder applies it.
"""

import math
import queue
import threading
import time
from collections import deque
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field, replace

import numpy as np
from numpy.typing import NDArray

from hltnode.daemon.common.threads import end_thread
from hltnode.daemon.common.vocabulary import SlotState, WindowFault
from hltnode.daemon.compute.direct_results import DirectResults
from hltnode.daemon.compute.engine_interface import StageTimings, Workspace
from hltnode.daemon.compute.histogram_tally import HistogramTally
from hltnode.daemon.compute.interruptions import ComputingLog, Interruptions, Part
from hltnode.daemon.compute.results import BatchResults, Results, flags_of
from hltnode.daemon.event_building.stimuli_and_effects import Batch, DirectTimes, MepRecord, SlotAdvanced
from hltnode.processing.framework.backends.interface import BackendError, DeviceLostError, Timings
from hltnode.processing.framework.batch import MepInBatch
from hltnode.processing.framework.flags import EventFlag
from hltnode.processing.framework.output_lists import OutputList

DecisionRows = tuple[NDArray[np.uint8], NDArray[np.uint32], NDArray[np.uint32]]

# Period of the progress check of unfinished batches, for the watchdog.
LOOK_SECONDS = 0.1
# Longest wait of the event loop for the compute thread to begin with a batch, or to decide a short one. On a busy
# machine, 0.25 ms are usual until it begins.
HAND_OVER_SECONDS = 1e-3
# Kernels of a short batch take at most this time. If the event loop went on meanwhile, it would have the interpreter
# when they end: the decision waited for it for 0.06 ms in the median.
SHORT_SECONDS = 5e-4
# Period of the updates of `tick_ns` by an idle thread.
IDLE_SECONDS = 0.5


@dataclass(frozen=True, slots=True)
class ComputedBatch:
    """A batch that the back end has finished.

    timings: one entry per part. error: why some MEPs have no results. not_processed: MEPs withheld from the back end,
    because earlier sessions of the node ended on them. tck: key of the trigger configuration of the run.
    """

    batch: Batch
    results: Results
    timings: tuple[StageTimings, ...]
    error: str | None
    not_processed: tuple[MepRecord, ...]
    tck: int = 0
    held: memoryview | None = None
    """A copy of its slot, which is free; None: the input is in the slot."""
    held_bytes: int = 0
    windows_decided: bool = False
    """The windows of its slices are decided: the results have all that are kept, and no others."""
    window_faults: Mapping[WindowFault, int] = field(default_factory=dict)
    """Faults of windows that the results have no more."""
    was_interrupted: bool = False
    """An earlier session ended while it computed one of the MEPs."""


@dataclass(slots=True)
class _Job:
    """A batch in progress: its uncomputed parts, and the results of the others."""

    batch: Batch
    results: BatchResults
    left: int
    not_processed: tuple[MepRecord, ...]
    timings: list[StageTimings] = field(default_factory=list)
    error: str | None = None
    tck: int = 0


class _Ended:
    """Queue item: the back end may have finished a batch."""


_ENDED = _Ended()


class Pipeline:
    """Sends batches through the workspaces of their slots.

    Args:
        n_lines: number of selection lines. collections: names of the counted collections.
        histograms: collects the counts of the workspaces.
        computing: records the MEPs of the back end; knows the MEPs that earlier sessions ended on.
        comes_once: whether no session gets the MEPs of a run again, because they come as datagrams.
        progress: called in the compute thread: RUN when the back end gets a part of a batch, DONE before `done`. A part
            that this thread computes has no RUN: to report it would wake the event loop before the kernels.
        done: called in the compute thread with each finished batch.
        decide: called in the compute thread with each finished batch, before anything wakes another thread and before
            its results are copied: it must not keep them.
        lost: called in the compute thread with the reason when the device is lost; the thread then ends.
        crashed: called in the compute thread with an unexpected exception; the thread then ends.
        decide_at_once: called before `decide` with a batch that the back end has computed as a whole, the key of its
            trigger configuration, and `Workspace.decision_rows`. The results are not taken yet.
        begin_run: called in the compute thread before the first batch of a run that is not the run of the batch before,
            while the back end has no batch. Returns the key of the trigger configuration of the run.
        lists: the output lists of the results. n_counters: number of counters of luminosity summaries.
        serial: compute one part at a time, on a CPU in the compute thread; the next one starts after `done` has
            returned. Otherwise those of several slots overlap.
        begin: called in the compute thread at its start.
        direct: the results of batches that are decided before they are submitted.
    """

    def __init__(
        self,
        workspaces: Sequence[Workspace],
        n_lines: int,
        collections: tuple[str, ...],
        histograms: HistogramTally,
        computing: ComputingLog,
        progress: Callable[[SlotAdvanced], None],
        done: Callable[[ComputedBatch], None],
        lost: Callable[[str], None],
        crashed: Callable[[BaseException], None],
        *,
        comes_once: Callable[[int], bool] = lambda _run: False,
        begin_run: Callable[[int], int] = lambda _run: 0,
        lists: Mapping[str, OutputList] | None = None,
        n_counters: int = 0,
        serial: bool = False,
        begin: Callable[[], object] = lambda: None,
        decide: Callable[[ComputedBatch], object] = lambda _computed: None,
        decide_at_once: Callable[[Batch, int, DecisionRows], object] = lambda _batch, _tck, _rows: None,
        direct: DirectResults | None = None,
        clock_ns: Callable[[], int] = time.monotonic_ns,
    ) -> None:
        self._direct = direct
        self.direct_since_ns: Callable[[], int] = lambda: 0
        """When the computation in the direct workspace began; 0: there is none."""
        self._decide_at_once = decide_at_once
        self._serial = serial
        self._begin = begin
        self._decide = decide
        self._lists = lists
        self._n_counters = n_counters
        self._begin_run = begin_run
        self._run_of_engine: int | None = None
        self._tck = 0
        self._workspaces = workspaces
        self._n_lines = n_lines
        self._collections = collections
        self._histograms = histograms
        self._interruptions = Interruptions(computing, comes_once)
        self._progress = progress
        self._done = done
        self._lost = lost
        self._crashed = crashed
        self._clock_ns = clock_ns
        self._queue: queue.SimpleQueue[Batch | _Ended | None] = queue.SimpleQueue()
        self._jobs: dict[int, _Job] = {}
        self._waiting: deque[Part] = deque()
        self._in_flight: list[Part] = []
        self._seen: tuple[Part, int] | None = None
        self._computing: Workspace | None = None
        """The workspace that this thread computes in. Only this thread changes it."""
        self._has_begun = threading.Event()
        """The compute thread is in the kernels of a long batch, has decided a short one, or has ended its turn."""
        self._kernel_seconds = math.inf
        """Time of the kernels of the last batch that this thread has computed."""
        self._own_progress = -1
        """Its progress when the clocks were last read. Only readers of the clocks change it."""
        self._thread = threading.Thread(target=self._run, name="hltnode-pipeline", daemon=True)
        self._tick_ns = self._advanced_ns = clock_ns()

    @property
    def tick_ns(self) -> int:
        """Last time when the thread was idle or the oldest batch of the back end made progress; any thread.

        A back end that hangs on one batch stops this clock, even if it computes others.
        """
        self._note_own_progress()
        return self._until_direct(self._tick_ns)

    @property
    def advanced_ns(self) -> int:
        """Last time when the oldest batch made progress; an idle thread stops this clock. Any thread."""
        self._note_own_progress()
        return self._until_direct(self._advanced_ns)

    def _until_direct(self, ns: int) -> int:
        """A direct computation stops the clocks: it is short, unless it hangs."""
        since_ns = self.direct_since_ns()
        return min(ns, since_ns) if since_ns else ns

    @property
    def short_run(self) -> tuple[int, int] | None:
        """The run of the back end and the key of its trigger configuration, if its last batch was short; any thread."""
        run = self._run_of_engine
        return None if run is None or self._kernel_seconds > SHORT_SECONDS else (run, self._tck)

    def _note_own_progress(self) -> None:
        """Update the clocks for a batch that the compute thread computes itself, and so cannot watch."""
        workspace = self._computing
        if workspace is not None and (progress := workspace.progress) != self._own_progress:
            self._own_progress = progress
            self._tick_ns = self._advanced_ns = self._clock_ns()

    def warm_up(self) -> None:
        """Run an empty batch through each workspace, before the thread starts.

        Raises BackendError.
        """
        for workspace in self._workspaces:
            ended = threading.Event()
            workspace.seal(())
            workspace.submit(ended.set)
            while not workspace.poll():
                ended.wait(LOOK_SECONDS)

    def start(self) -> None:
        """Start the thread."""
        self._tick_ns = self._clock_ns()
        self._thread.start()

    def submit(self, batch: Batch) -> None:
        """Queue a sealed slot; any thread.

        In serial mode it returns when an idle compute thread has come to the kernels of the batch, or has decided it if
        the batches are short. Otherwise the caller would keep the interpreter for the rest of its turn, and the batch
        would wait for that.
        """
        is_idle = self._computing is None and not self._in_flight
        waits = self._serial and is_idle and batch.direct is None and self._queue.empty()
        if waits:
            self._has_begun.clear()
        self._queue.put(batch)
        if waits:
            self._has_begun.wait(HAND_OVER_SECONDS)

    def stop(self, timeout_s: float) -> bool:
        """End the thread after its batches in flight; False on timeout (a hanging back end)."""
        return end_thread(self._thread, self._queue, timeout_s)

    def _run(self) -> None:
        try:
            self._begin()
            while self._turn():
                pass
        except DeviceLostError as error:
            self._lost(str(error))
        except BaseException as error:
            self._crashed(error)
            raise

    def _turn(self) -> bool:
        item = self._next()
        if item is None:
            self._move()
            while self._in_flight or self._waiting:
                self._next()
                self._move()
            return False
        if isinstance(item, Batch):
            self._take(item)
        self._move()
        self._has_begun.set()
        return True

    def _next(self) -> Batch | _Ended | None:
        """The next item of the queue; after a timeout, the back end is polled anyway."""
        try:
            return self._queue.get(timeout=LOOK_SECONDS if self._in_flight else IDLE_SECONDS)
        except queue.Empty:
            return _ENDED

    def _note_end(self) -> None:
        self._queue.put(_ENDED)

    def _move(self) -> None:
        """Collect finished parts from the back end, and submit the next parts."""
        self._poll()
        while self._waiting and self._may_start(self._waiting[0]):
            self._start(self._waiting.popleft())
        self._note_progress()

    def _take(self, batch: Batch) -> None:
        parts, left_out = self._interruptions.divide(batch)
        results = BatchResults(
            batch.meps, self._n_lines, self._collections, EventFlag.NOT_PROCESSED, self._lists, self._n_counters
        )
        job = self._jobs[batch.slot] = _Job(batch, results, max(1, len(parts)), left_out)
        if not parts and batch.run == self._run_of_engine and not self._waiting:
            # Dropped MEPs free their slot at once, even if batches are computed one after the other.
            job.tck = self._tck
            self._finish(job)
            return
        # A batch without MEPs to compute keeps its place among the others, because it may begin a run.
        parts = parts or [Part(batch, ())]
        self._waiting += parts

    def _may_start(self, part: Part) -> bool:
        """Whether a part may start: a part to be computed alone waits for all others, and they wait for it. The first
        part of a run waits for those of the run before."""
        if not self._in_flight:
            return True
        if self._serial:
            return False
        return part.batch.run == self._run_of_engine and not (part.alone or self._in_flight[-1].alone)

    def _start(self, part: Part) -> None:
        batch = part.batch
        if batch.run != self._run_of_engine:
            if self._direct is not None:
                self._await_direct()
            self._tck = self._begin_run(batch.run)
            self._run_of_engine = batch.run
        job = self._jobs[batch.slot]
        job.tck = self._tck
        if not part.meps:
            self._finish(job)
            return
        slot, workspace = self._place(batch)
        batch.times.begun_ns = batch.times.begun_ns or self._clock_ns()
        self._interruptions.begin(part)
        self._histograms.begin(slot, batch.run)
        if batch.direct is not None:
            assert self._direct is not None
            self._kernel_seconds = _seconds(batch.direct)
            self._direct.keep()
            self._end(part, None)
            return
        try:
            workspace.seal([MepInBatch(mep.n_events, mep.fragments, flags_of(mep)) for mep in part.meps])
            is_done = self._serial and self._compute_here(workspace)
            if not is_done:
                # Copy, kernels and copy back are one asynchronous job, which the host cannot divide.
                self._progress(SlotAdvanced(batch.slot, SlotState.RUN))
                workspace.submit(self._note_end)
        except DeviceLostError:
            raise
        except BackendError as error:
            self._end(part, str(error))
        else:
            if is_done:
                self._end(part, None)
            else:
                self._in_flight.append(part)

    def _await_direct(self) -> None:
        """Wait until no direct batch uses the constants of this run."""
        while self.direct_since_ns():
            # Its results are not used any more: only a slow computation lasts until here.
            time.sleep(LOOK_SECONDS)

    def _place(self, batch: Batch) -> tuple[int, Workspace]:
        """The workspace that has the results of a batch, and its number."""
        if batch.direct is None:
            return batch.slot, self._workspaces[batch.slot]
        assert self._direct is not None
        return len(self._workspaces), self._direct.workspace

    def _compute_here(self, workspace: Workspace) -> bool:
        self._computing = workspace
        if self._kernel_seconds > SHORT_SECONDS:
            self._has_begun.set()
        try:
            is_done = workspace.compute_here()
        finally:
            self._computing = None
        if is_done:
            self._kernel_seconds = workspace.timings.kernels
        return is_done

    def _poll(self) -> None:
        for part in self._in_flight.copy():
            try:
                if not self._workspaces[part.batch.slot].poll():
                    continue
                error = None
            except DeviceLostError:
                raise
            except BackendError as failure:
                error = str(failure)
            self._in_flight.remove(part)
            self._end(part, error)

    def _note_progress(self) -> None:
        """Update the progress clocks.

        Batches run in order, so the oldest one makes progress unless the back end hangs.
        """
        oldest = self._in_flight[0] if self._in_flight else None
        seen = None if oldest is None else (oldest, self._workspaces[oldest.batch.slot].progress)
        if seen is None or seen != self._seen:
            self._tick_ns = self._clock_ns()
        if seen != self._seen:
            self._advanced_ns = self._tick_ns
        self._seen = seen

    def _end(self, part: Part, error: str | None) -> None:
        """The back end finished a part."""
        self._interruptions.end(part)
        job, direct = self._jobs[part.batch.slot], part.batch.direct
        slot, workspace = self._place(part.batch)
        if error is None:
            if direct is None and len(part.meps) == len(part.batch.meps) and not part.alone:
                part.batch.times.computed_ns = self._clock_ns()
                self._decide_at_once(part.batch, job.tck, workspace.decision_rows)
            job.results.add(part.meps, workspace.output)
            job.timings.append(workspace.timings if direct is None else Timings(0.0, _seconds(direct), 0.0))
        else:
            job.results.fail(part.meps)
            job.error = error
        job.left -= 1
        if job.left == 0:
            self._finish(job, part)
        else:
            self._histograms.end(slot, part.batch.run)

    def _finish(self, job: _Job, last: Part | None = None) -> None:
        """last: the last part, which the back end has just finished; None: it got none."""
        batch = job.batch
        del self._jobs[batch.slot]
        times = batch.times
        times.computed_ns = times.computed_ns or self._clock_ns()
        times.begun_ns = times.begun_ns or times.computed_ns
        computed = ComputedBatch(
            batch,
            job.results.for_decisions(),
            tuple(job.timings),
            job.error,
            job.not_processed,
            job.tck,
            # Interrupted MEPs are the last parts of their batches.
            was_interrupted=last is not None and last.alone,
        )
        self._decide(computed)
        # The rest is done when the decisions have left.
        self._has_begun.set()
        if last is not None:
            self._histograms.end(self._place(batch)[0], batch.run)
        self._progress(SlotAdvanced(batch.slot, SlotState.DONE))
        self._done(replace(computed, results=job.results.gathered()))


def _seconds(direct: DirectTimes) -> float:
    return (direct.computed_ns - direct.joined_ns) * 1e-9
