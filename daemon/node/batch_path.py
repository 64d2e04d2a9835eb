"""The path of a batch through a node: compute, gather and write, and the output directory at its end.

Every stage has its own thread. Callbacks to parts of the event loop are called in the event loop.
"""

import asyncio
from collections.abc import Callable, Mapping, Sequence
from dataclasses import replace
from typing import Any

from hltnode.client.keys import load_client_keys
from hltnode.daemon.combiner.hold_stage import HoldStage
from hltnode.daemon.combiner.window_rows import WindowRows
from hltnode.daemon.common.log import get_logger
from hltnode.daemon.common.threads import call_in_loop
from hltnode.daemon.common.vocabulary import DecisionThread, EventStream
from hltnode.daemon.compute.pipeline import ComputedBatch, DecisionRows, Pipeline
from hltnode.daemon.event_building.stimuli_and_effects import Batch
from hltnode.daemon.node.core import NodeCore
from hltnode.daemon.node.sizing import gathered_streams
from hltnode.daemon.output.decision_deadline import DecisionDeadline
from hltnode.daemon.output.decision_lists import DecisionLists
from hltnode.daemon.output.early_decisions import EarlyDecisions
from hltnode.daemon.output.event_encoder import EventEncoder
from hltnode.daemon.output.gather_stage import GatherStage
from hltnode.daemon.output.gathering import DecidedBatch, EventGatherer, GatheredBatch
from hltnode.daemon.output.output_stage import OutputStage
from hltnode.daemon.output.requests import (
    Confirmed,
    FinishFiles,
    InputKnown,
    KeepTck,
    Request,
    RevokeEvents,
    Supervised,
)
from hltnode.daemon.output.time_windows import TimeWindows
from hltnode.daemon.readout.builder_control import BuilderControl
from hltnode.daemon.storage.directory_lock import DirectoryLock
from hltnode.daemon.storage.event_store import EventStore
from hltnode.daemon.storage.histogram_files import HistogramFiles
from hltnode.daemon.storage.recovery import StoreSettings, boot_id, take_over
from hltnode.daemon.storage.room_at_start import open_when_there_is_room
from hltnode.daemon.udp.local_feeder import IDENTITY as UDP_FEEDER
from hltnode.processing.selection.configuration.tck import TckDocument, tck_file_name
from hltnode.processing.selection.errors import TriggerConfigError
from hltnode.protocol._native import DecisionWriter
from hltnode.protocol.transport.decisions import DECISION_VERSION, DecisionGroup, MepDecision
from hltnode.protocol.transport.feeder_messages import Revoked

# One failed batch may be a bad batch. This many failures in a row mean a broken back end; only a restart can help.
MAX_FAILED_BATCHES = 3

log = get_logger("batch_path")


class BatchPath:
    """Pipeline, gather stage and output stage, and the files that they write. Call `open` first, then `start`.

    Args:
        trigger: the trigger configuration, written beside the events that its lines accept.
        failed: called in the loop with the reason when the node cannot continue.
        crashed: called from a thread that cannot continue.
    """

    def __init__(
        self,
        core: NodeCore,
        trigger: TckDocument | None,
        failed: Callable[..., None],
        crashed: Callable[[BaseException], None],
    ) -> None:
        self._core = core
        self._trigger = trigger
        self._failed = failed
        self._crashed = crashed
        self._lock: DirectoryLock | None = None
        self._failed_batches = 0
        self._early: EarlyDecisions | None = None
        self._direct_run = 0, 0
        """The run of direct decisions, and its TCK."""
        self._decided: ComputedBatch | DecidedBatch | None = None
        """The batch whose decisions the compute thread has sent just now."""
        self.hold: HoldStage | None = None
        self.histogram_files: HistogramFiles | None = None

    def open(
        self,
        loop: asyncio.AbstractEventLoop,
        control: BuilderControl,
        events_revoked: Callable[[tuple[bytes, Revoked]], None],
        deliver: Callable[[GatheredBatch], None],
        send_at_once: Callable[[Sequence[MepDecision | DecisionGroup]], int],
        send_written: Callable[[Callable[[int], bytes]], bool],
    ) -> None:
        """Lock the output directory, recover its files, and create the stages that write there.

        Args:
            events_revoked: called in the loop when the files hold nothing of revoked MEPs any more.
            deliver: called in the loop with each written batch.
            send_at_once: called in the compute thread with decisions that leave before the files; returns how many of
                them are sent.
            send_written: the same for a message that a function makes of its sequence number.

        Raises:
            OSError: the output directory cannot be written.
            DirectoryLockedError: another node writes to the output directory.
        """
        core, config, output, engine = self._core, self._core.config, self._core.config.output, self._core.engine
        self._loop = loop
        self._lock = DirectoryLock(output.directory)
        settings = StoreSettings(
            max_file_bytes=output.max_file_bytes,
            max_file_events=output.max_file_events,
            fsync=output.fsync,
            tck=engine.tck,
            policies={EventStream.ACCEPTED: output.policy, EventStream.ERROR: output.error_policy},
        )
        self.store = open_when_there_is_room(
            lambda: self._take_over(settings), core.counters.writer, core.notifier.start_lasts
        )
        self.store.own(self._lock.replaced)
        if engine.histograms:
            self.histogram_files = HistogramFiles(
                output.directory,
                core.file_name,
                f"{core.file_name}_{core.session}",
                core.tally,
                core.counters.writer,
                config.histograms.file_period_s,
                core.about,
                core.clock_ns,
            )
        journal = self.store.journal.content
        if core.is_shadow:
            # The next session may decide again, with another configuration; nothing depends on these decisions.
            for run in journal.done():
                self.store.end_run(run)
        keys = journal.keys() if core.conditions_of_runs.may_change else {}
        going_on = core.conditions_of_runs.remember(self._kept_documents(keys))
        others = {run: tck for run, tck in journal.of_other_tck(engine.tck).items() if run not in going_on}
        control.remember(journal.done(), others, journal.inputs())
        self.pipeline = Pipeline(
            core.workspaces,
            len(engine.lines),
            engine.collections,
            core.tally,
            self.store.journal,
            lambda advanced: self._in_loop(control.slot_advanced, advanced),
            self._computed,
            lambda error: self._in_loop(self._device_lost, error),
            self._crashed,
            comes_once=self._comes_once,
            begin_run=self._begin_run,
            lists=engine.lists,
            n_counters=len(engine.summary),
            serial=config.latency.serial,
            begin=lambda: core.scheduling.apply(DecisionThread.COMPUTE),
            decide=self._decide,
            decide_at_once=self._decide_at_once,
            direct=core.direct,
            clock_ns=core.clock_ns,
        )
        self.output = OutputStage(
            self.store,
            lambda written: self._in_loop(deliver, written),
            lambda receipt: self._in_loop(events_revoked, receipt),
            self._crashed,
            streams=output.streams,
            clock_ns=core.clock_ns,
        )
        gatherer = EventGatherer(
            core.buffers,
            lambda tck: EventEncoder(
                tck,
                engine.line_routing,
                engine.collections,
                engine.flags,
                [engine.lists[name] for name in output.lists],
                engine.summary,
                checksums=output.checksums,
            ),
            engine.flags,
            node=config.node.name,
            chain=core.info.chain,
            n_lines=len(engine.lines),
            lists=DecisionLists(
                [engine.lists[name].description for name in config.decisions.lists], config.decisions.max_list_bytes
            ),
            windows=None
            if engine.streaming is None or engine.windows is None
            else TimeWindows(engine.streaming, engine.windows, engine.error_types, config.streaming.clock_offsets_ns),
            gathered=gathered_streams(config),
            stored=output.streams,
            keeps_events=not core.is_shadow,
            meps_per_message=config.decisions.meps_per_message,
        )
        if config.latency.decisions_first:
            deadline = DecisionDeadline(config.latency.deadline_us * 1_000)
            begun_below = None if config.udp.endpoint is None else self.store.journal.begun_below
            self._early = EarlyDecisions(
                gatherer,
                send_at_once,
                deadline,
                begun_below=begun_below,
                writer=None
                if config.decisions.lists or engine.windows is not None
                else DecisionWriter(config.node.name, core.info.chain, len(engine.lines), DECISION_VERSION),
                send_written=send_written,
                clock_ns=core.clock_ns,
            )
        self.gather = GatherStage(
            gatherer,
            core.room,
            lambda batch: self._in_loop(control.slot_freed, batch),
            self.output.submit,
            self._crashed,
            released=lambda nbytes: None if self.hold is None else self.hold.gathered(nbytes),
            clock_ns=core.clock_ns,
        )
        self._submit: Callable[[ComputedBatch | Request], None] = self.gather.submit
        if config.combiner.endpoint is not None:
            self.hold = self._hold_stage(control)
            self._submit = self.hold.submit

    def _hold_stage(self, control: BuilderControl) -> HoldStage:
        core, combiner, engine = self._core, self._core.config.combiner, self._core.engine
        if engine.streaming is None or engine.windows is None:
            raise TriggerConfigError(f"combiner.endpoint: chain {core.info.chain} has no windows of time")
        return HoldStage(
            combiner,
            load_client_keys(combiner.server_key, combiner.key_file),
            WindowRows(engine.streaming, engine.windows),
            TimeWindows(engine.streaming, engine.windows, engine.error_types),
            engine.flags,
            core.buffers,
            core.counters.held,
            lambda batch: self._in_loop(control.slot_freed, batch),
            self.gather.submit,
            self._crashed,
            node=core.config.node.name,
            session=core.session,
            chain=core.info.chain,
            max_slices=core.config.builder.closed_ring // 2,
            clock_ns=core.clock_ns,
        )

    def warm_up(self) -> None:
        """Run an empty batch through each slot. Raises BackendError.

        Under a deadline, the library of histograms is loaded, too: its import would hold the interpreter for 0.7 s
        during the first run.
        """
        if self.histogram_files is not None and self._core.config.latency.is_asked:
            self.histogram_files.load()
        self.pipeline.warm_up()

    def start(self) -> None:
        """Start the threads; the back end is already warm."""
        self.pipeline.start()
        if self.hold is not None:
            self.hold.start()
        self.gather.start()
        self.output.start()
        if self.histogram_files is not None:
            self.histogram_files.start()

    def _take_over(self, settings: StoreSettings) -> EventStore:
        """The store of this session, after the recovery of earlier files. Raises OutputError."""
        core, config = self._core, self._core.config
        store = take_over(
            config.output.directory, core.file_name, core.session, core.counters.writer, settings, boot=boot_id()
        )
        try:
            if self._trigger is not None:
                log.info("tck_document", tck=self._trigger.name, file=store.keep_tck(self._trigger))
        except BaseException:
            store.abandon()
            raise
        return store

    def _kept_documents(self, keys: Mapping[int, int]) -> dict[int, TckDocument]:
        """The trigger configurations of runs, from the output directory; without those that are not there."""
        found = {}
        for run, tck in keys.items():
            path = self._core.config.output.directory / tck_file_name(tck)
            try:
                found[run] = TckDocument.load(path)
            except TriggerConfigError as error:
                log.warning("tck_document_unreadable", run=run, error=str(error))
        return found

    def release(self) -> None:
        """Release the lock of the output directory."""
        if self._lock is not None:
            self._lock.release()

    # Requests of the event builder and the feeders

    def submit(self, batch: Batch) -> None:
        """Compute a sealed slot."""
        self.pipeline.submit(batch)

    def finish_files(self, summary: dict[str, Any], over: bool) -> None:
        """Give the files of a run their final names, after all earlier batches; `over`: the run has ended."""
        self._submit(FinishFiles(summary, over))
        if self.histogram_files is not None:
            self.histogram_files.finish(summary["run"])

    def revoke_events(self, request: RevokeEvents) -> None:
        """Remove the events of MEPs that another node builds now."""
        self._submit(request)

    def confirmed(self, run: int, below: int) -> None:
        """Every feeder has confirmed all MEPs of the run below this id."""
        self._submit(Confirmed(run, below))

    def supervised(self, run: int) -> None:
        """A feeder may revoke MEPs of the run."""
        self._submit(Supervised(run))

    def input_known(self, run: int, name: str) -> None:
        """The feeders of the run name their input."""
        self._submit(InputKnown(run, name))

    # From other threads

    @property
    def has_plain_decisions(self) -> bool:
        """Whether decisions leave first, and their messages have nothing else."""
        return self._early is not None and self._early.has_writer

    def may_decide_directly(self, run: int) -> int:
        """In the loop: one more than the largest MEP id of a run that a direct decision may have now; 0: none.

        The decisions that follow are those of this run.
        """
        short_run = self.pipeline.short_run
        if short_run is None or short_run[0] != run or not self._comes_once(run):
            return 0
        self._direct_run = short_run
        return self.store.journal.begun_below(run)

    def leave_directly(self, mep: int, first_event: int, n_events: int) -> bool:
        """In a thread that receives datagrams: send a decision; False if it was not sent."""
        try:
            assert self._early is not None
            assert self._core.direct is not None
            run, tck = self._direct_run
            rows = self._core.direct.workspace.decision_rows
            return self._early.leave_directly(run, mep, first_event, n_events, tck, rows)
        except BaseException as error:
            self._crashed(error)
            return False

    def _begin_run(self, run: int) -> int:
        """In the compute thread: the conditions of a run, whose document is written before its events."""
        runs = self._core.conditions_of_runs
        document = runs.begin(run)
        if document is not None:
            self.store.journal.use_tck(document.tck)
            self._submit(KeepTck(document))
        return runs.tck_of(run)

    def _comes_once(self, run: int) -> bool:
        """In the compute thread: whether all fragments of the current run are datagrams, which are not sent again.

        False for a run that has just ended, and for one that a feeder delivers in place of the senders of datagrams.
        """
        builder, registry = self._core.builder, self._core.registry
        # A new run sets its number before its sources, so these sources are not those of a later run.
        sources = builder.sources
        return builder.run == run and all(registry.owner_of(run, source) == UDP_FEEDER for source in sources)

    def _in_loop(self, callback: Callable[..., object], *arguments: object) -> None:
        call_in_loop(self._loop, callback, *arguments)

    def _decide_at_once(self, batch: Batch, tck: int, rows: DecisionRows) -> None:
        if self._early is not None:
            self._early.leave_at_once(batch, tck, rows)

    def _decide(self, computed: ComputedBatch) -> None:
        if self._early is not None:
            self._decided = self._early.leave(computed)

    def _computed(self, computed: ComputedBatch) -> None:
        decided, self._decided = self._decided, None
        if isinstance(decided, DecidedBatch):
            self.gather.submit(replace(decided, computed=computed))
        elif decided is not None:
            self.gather.submit(computed)
        else:
            self._submit(computed)
        if computed.error is not None or self._failed_batches:
            self._in_loop(self._note_outcome, computed.error)

    # In the loop

    def _note_outcome(self, error: str | None) -> None:
        if error is None:
            self._failed_batches = 0
            return
        self._core.counters.backend_errors += 1
        self._failed_batches += 1
        log.error("batch_failed", error=error, in_a_row=self._failed_batches)
        if self._failed_batches >= MAX_FAILED_BATCHES:
            self._failed("the back end failed on every recent batch", error=error)

    def _device_lost(self, error: str) -> None:
        """Stop: this process cannot compute any batch. The next session computes the batches that the back end had."""
        self._core.counters.backend_errors += 1
        self._failed("the device is lost", error=error)
