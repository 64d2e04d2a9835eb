"""The last step of a batch: send decisions and events, count the batch, acknowledge its MEPs to the feeders."""

import asyncio
from collections.abc import Callable
from operator import itemgetter

from hltnode.daemon.common.vocabulary import ComputePart, MepStage, Stage
from hltnode.daemon.compute.pipeline import ComputedBatch
from hltnode.daemon.monitoring.counters import Counters
from hltnode.daemon.node.event_pictures import EventPictures
from hltnode.daemon.output.gathering import GatheredBatch
from hltnode.daemon.output.output_queue import OutputQueue
from hltnode.daemon.output.output_set import Outputs
from hltnode.daemon.readout.builder_control import BuilderControl


class BatchDelivery:
    """Delivers written batches in order, from `start` to `stop`. All calls come from the event loop.

    Args:
        failed: called with the reason when delivery cannot continue, so no MEP would be acknowledged.
        pictures: draws accepted events on request.
    """

    def __init__(
        self,
        outputs: Outputs,
        room: OutputQueue,
        counters: Counters,
        control: BuilderControl,
        failed: Callable[[str], None],
        clock_ns: Callable[[], int],
        pictures: EventPictures | None = None,
    ) -> None:
        self._outputs = outputs
        self._room = room
        self._counters = counters
        self._control = control
        self._failed = failed
        self._clock_ns = clock_ns
        self._pictures = pictures
        self._written: asyncio.Queue[GatheredBatch] = asyncio.Queue()
        self._task: asyncio.Task[None] | None = None

    def start(self, loop: asyncio.AbstractEventLoop) -> None:
        """Start to deliver."""
        self._task = loop.create_task(self._deliver_all())
        self._task.add_done_callback(self._ended)

    async def stop(self) -> None:
        """Stop delivering; queued batches are not acknowledged."""
        if self._task is not None:
            self._task.cancel()
            await asyncio.gather(self._task, return_exceptions=True)

    def put(self, written: GatheredBatch) -> None:
        """Queue a batch for delivery."""
        self._written.put_nowait(written)

    def _ended(self, task: asyncio.Task[None]) -> None:
        if not task.cancelled() and (error := task.exception()) is not None:
            self._failed(f"batch delivery: {error!r}")

    async def _deliver_all(self) -> None:
        while True:
            await self._deliver(await self._written.get())

    def _observe_stages(self, computed: ComputedBatch) -> None:
        batch = computed.batch
        counters, times, n_meps = self._counters, batch.times, len(batch.meps)
        published_ns = times.published_ns
        for mep in batch.meps:
            counters.mep_stages[MepStage.SEAL].observe((times.sealed_ns - mep.closed_ns) * 1e-9)
            counters.end_to_end.observe((published_ns - mep.closed_ns) * 1e-9)
            counters.mep_latency.observe((published_ns - mep.first_ns) * 1e-9)
        ends = [
            (MepStage.QUEUE, times.begun_ns),
            (MepStage.COMPUTE, times.computed_ns),
            (MepStage.GATHER, times.gathered_ns),
            *sorted([(MepStage.WRITE, times.written_ns), (MepStage.PUBLISH, published_ns)], key=itemgetter(1)),
        ]
        begin_ns = times.sealed_ns
        for stage, end_ns in ends:
            counters.mep_stages[stage].observe((end_ns - begin_ns) * 1e-9, n_meps)
            begin_ns = end_ns
        self._observe_compute(computed)

    def _observe_compute(self, computed: ComputedBatch) -> None:
        """Divide the compute stage; without timings, as after an error, all of it is time of the host."""
        times, counters, n_meps = computed.batch.times, self._counters, len(computed.batch.meps)
        parts = {
            ComputePart.H2D: sum(each.h2d for each in computed.timings),
            ComputePart.KERNELS: sum(each.kernels for each in computed.timings),
            ComputePart.D2H: sum(each.d2h for each in computed.timings),
        }
        # The clocks of a device and of the host may differ by a microsecond.
        rest = max(0.0, (times.computed_ns - times.begun_ns) * 1e-9 - sum(parts.values()))
        for part, seconds in (*parts.items(), (ComputePart.HOST, rest)):
            counters.mep_compute[part].observe(seconds, n_meps)

    async def _deliver(self, written: GatheredBatch) -> None:
        computed, results, counters = written.computed, written.computed.results, self._counters
        await self._outputs.publish(written)
        if written.unsent is not None:
            counters.decisions.sent += written.n_sent
            counters.decisions_first += written.n_sent
            if computed.batch.direct is not None:
                counters.decisions_directly += written.n_sent
            # Sending in the compute thread may have taken the news of the socket.
            self._outputs.decisions_sent()
        for stream, n in written.not_stored.items():
            counters.events_not_stored[stream] += n
        counters.count_batch(results.accepted, results.lines, results.flags)
        counters.count_objects(results.objects)
        counters.candidates_left_out += written.candidates_left_out
        counters.lists_left_out += written.lists_left_out
        if written.windows is not None:
            for count, n in written.windows.counts.items():
                counters.windows[count] += n
            for fault, n in written.windows.faults.items():
                counters.window_faults[fault] += n
            for time, ns in written.windows.times.items():
                counters.stream_ns[time] += ns
        counters.meps_not_processed += len(computed.not_processed)
        for timings in computed.timings:
            counters.stages[Stage.H2D].observe(timings.h2d)
            counters.stages[Stage.KERNELS].observe(timings.kernels)
            counters.stages[Stage.D2H].observe(timings.d2h)
        if written.to_send or not computed.batch.times.published_ns:
            computed.batch.times.published_ns = self._clock_ns()
        self._observe_stages(computed)
        self._control.batch_done(computed.batch)
        self._room.take(written.nbytes)
        if self._pictures is not None and self._pictures.wanted:
            self._pictures.offer(written)
