"""The node: sockets, builder, pipeline, outputs and HTTP in one process, from bind to drain.

Order of a start: bind the sockets, lock the output directory, take over what earlier sessions have left in it, warm up
the back end, then run; or wait for commands, if it does not start by itself. So a node that is started a second time
changes nothing, whichever of its ports is free. Order of a stop: no more credits, what was granted is built and
computed, decisions, files and acknowledgements go out, then everything is closed.
"""

import asyncio
import json
import secrets
import sys
import time
from collections.abc import Callable
from functools import partial
from pathlib import Path
from typing import Any

import zmq

from hltnode.daemon.common.log import get_logger
from hltnode.daemon.common.threads import in_daemon_thread
from hltnode.daemon.common.vocabulary import Endpoint, EventStream
from hltnode.daemon.compute.engine_interface import Engine
from hltnode.daemon.compute.histogram_tally import HistogramTally
from hltnode.daemon.compute.pipeline import ComputedBatch, Pipeline
from hltnode.daemon.configuration.model import NodeConfig
from hltnode.daemon.event_building.event_builder import EventBuilder
from hltnode.daemon.event_building.slots import SlotPool
from hltnode.daemon.event_building.stimuli_and_effects import Batch, SlotAdvanced
from hltnode.daemon.monitoring.counters import Counters
from hltnode.daemon.monitoring.health import Health
from hltnode.daemon.monitoring.histograms import as_uhi
from hltnode.daemon.monitoring.http_places import HttpPlaces
from hltnode.daemon.monitoring.http_server import HttpServer
from hltnode.daemon.monitoring.metrics import BuildInfo, NodeCollector, render
from hltnode.daemon.monitoring.snapshot import snapshot
from hltnode.daemon.node.batch_delivery import BatchDelivery
from hltnode.daemon.node.free_space import FreeSpace
from hltnode.daemon.node.hot_reload import HotReload
from hltnode.daemon.node.periodic_tasks import PeriodicTasks
from hltnode.daemon.node.sizing import builder_limits, max_events_per_mep, slot_limits
from hltnode.daemon.node.status import NodeStatus, memory_status
from hltnode.daemon.node.systemd import Notifier
from hltnode.daemon.output.event_encoder import EventEncoder
from hltnode.daemon.output.gather_stage import GatherStage
from hltnode.daemon.output.gathering import EventGatherer
from hltnode.daemon.output.output_queue import OutputQueue
from hltnode.daemon.output.output_set import Outputs
from hltnode.daemon.output.output_sockets import DecisionPublisher
from hltnode.daemon.output.output_stage import OutputStage
from hltnode.daemon.output.requests import Confirmed, FinishFiles, RevokeEvents, Supervised
from hltnode.daemon.readout.acknowledgements import Acknowledgements
from hltnode.daemon.readout.effect_executor import EffectExecutor
from hltnode.daemon.readout.feeder_protocol import FeederProtocol
from hltnode.daemon.readout.feeder_registry import FeederRegistry
from hltnode.daemon.readout.feeder_socket import ControlSocket
from hltnode.daemon.readout.input_tap import InputTap
from hltnode.daemon.readout.reading_clock import ReadingClock
from hltnode.daemon.readout.receiver import Receiver
from hltnode.daemon.readout.silent_sources import SilentSourceMonitor
from hltnode.daemon.run_control.controller import RunController
from hltnode.daemon.run_control.http_control import HttpControl
from hltnode.daemon.run_control.socket_control import SocketControl
from hltnode.daemon.security.access_control import AccessControl
from hltnode.daemon.storage.directory_lock import DirectoryLock
from hltnode.daemon.storage.histogram_files import HistogramFiles
from hltnode.daemon.storage.recovery import StoreSettings, boot_id, take_over
from hltnode.processing.selection.tck import TckDocument
from hltnode.protocol.transport.frame_header import HEADER_SIZE
from hltnode.protocol.transport.run_control_messages import CommandName, RunState

# The time that acknowledgements and last decisions have to leave.
LINGER_MS = 500
STOP_SECONDS = 5.0
# The other threads, the limiter of the connections above all, get the interpreter after this time and not after 5 ms:
# with a busy event loop 300 connections that came and went took 1.4 s to be counted, and 0.4 s with this.
SWITCH_SECONDS = 0.0005
# After a second SIGTERM the node does not wait for acknowledgements, only for its files to be whole.
ABANDON_SECONDS = 0.5
# A batch that fails may be a bad batch; this many in a row are a broken back end, and only a restart can help.
MAX_FAILED_BATCHES = 3

log = get_logger("node")

Context = zmq.Context[zmq.Socket[bytes]]


class Node:
    """One trigger node. `start`, then `run`, which lasts until `request_stop`; `run` returns the exit code.

    `trigger` is put beside the events that its lines accept. `config_file` is what a reload reads again.

    Raises (start):
        SecurityError: a key, an allow-list or the token cannot be used.
        zmq.ZMQError, OSError: an endpoint or the HTTP port cannot be bound, the output directory cannot be written.
        DirectoryLockedError: another node writes to the output directory.
        BackendError: the back end does not run an empty batch.
    """

    def __init__(
        self,
        config: NodeConfig,
        engine: Engine,
        *,
        backend: str,
        version: str,
        trigger: TckDocument | None = None,
        config_file: Path | None = None,
        clock_ns: Callable[[], int] = time.monotonic_ns,
    ) -> None:
        self.config = config
        self.counters = Counters()
        self.counters.operation.last_reload_s = time.time()
        self.counters.set_lines(engine.lines)
        self.counters.set_collections(engine.collections)
        self.session = secrets.token_hex(8)
        self._trigger = trigger
        self._config_file = config_file
        self._engine = engine
        self._clock_ns = clock_ns
        self.clock = ReadingClock(clock_ns)
        now_ns = self.clock.now_ns
        self.health = Health(
            loop_tick_ns=now_ns,
            pipeline_tick_ns=now_ns,
            feeders_expected=config.builder.feeders,
            unhealthy_after_ns=config.node.unhealthy_after_ms * 1_000_000,
            configured=True,
        )
        self._pool = SlotPool(config.pipeline.slots, slot_limits(config))
        self.builder = EventBuilder(self._pool, builder_limits(config), self.counters)
        self._info = BuildInfo(version=version, node=config.node.name, backend=backend, tck=f"0x{engine.tck:08X}")
        self._about = {"node": config.node.name, "session": self.session, "tck": self._info.tck}
        self._histogram_files: HistogramFiles | None = None
        self._workspaces = [engine.create_workspace() for _ in self._pool.slots]
        self._tally = HistogramTally(engine.histograms, self._workspaces, clock_ns)
        self._buffers = [workspace.input_data.data for workspace in self._workspaces]
        self._notifier = Notifier()
        self._silence = SilentSourceMonitor(
            self.builder, self.counters, silent_ns=config.builder.silent_source_ms * 1_000_000, clock_ns=clock_ns
        )
        self._registry = FeederRegistry(
            run=config.node.run,
            feeders=config.builder.feeders,
            sources=config.builder.expected_sources,
            max_events_per_mep=max_events_per_mep(config, len(engine.lines)),
        )
        self._acknowledgements = Acknowledgements()
        self._room = OutputQueue(config.output.queue_bytes)
        self._free_space = FreeSpace(config.output.directory)
        self._stop = asyncio.Event()
        self._stop_now = asyncio.Event()
        self._warming_up = False
        self._closers: list[Callable[[int], None]] = []
        self._http: HttpServer | None = None
        self.tap: InputTap | None = None
        self._exit_code = 0
        self._failed_batches = 0
        self.backend_hangs = False
        """The back end has not returned a batch when the node was closed: a thread is left that cannot be ended."""

    async def start(self) -> None:
        """Bind, warm up, and begin to take data."""
        self._loop = asyncio.get_running_loop()
        sys.setswitchinterval(SWITCH_SECONDS)
        self._loop.set_exception_handler(self._loop_exception)
        config = self.config
        self._context: Context = zmq.Context(config.network.io_threads)
        try:
            self._bind()
            await in_daemon_thread(self._own_directory)
            self._free_space.start()
            self._http = HttpServer(
                self.scrape,
                self.health,
                self.status.full,
                self._http_control.answer,
                histograms=self.histograms_page,
                refused=lambda reason: self.counters.operation.count_refused(Endpoint.HTTP, reason),
                places=HttpPlaces(config.limits.http_connections, config.limits.http_connections_per_address),
                monotonic_ns=lambda: self.clock.now_ns,
            )
            self.http_port = await self._http.start(config.http.host, config.http.port)
            if config.node.autostart:
                await self.controller.configure_now()
        except BaseException:
            await self._close_sockets(linger_ms=0)
            raise
        self.receiver.start(self._loop)
        commands = SocketControl(self.controller, self.access.may_command, self.counters.operation)
        self.control.start(self._loop, self.feeder_protocol.message_arrived, commands.answer, self.access.may_feed)
        self._batch_delivery.start(self._loop)
        self._hot_reload = HotReload(
            config, self._config_file, self.access, self.feeder_protocol, self.counters.operation, self._notifier
        )
        self._periodic_tasks.start(self._loop)
        if config.node.autostart:
            self.controller.execute(CommandName.START)
        self._notifier.ready(f"data on {self.receiver.endpoint}")
        log.info(
            "ready",
            state=self.state,
            node=config.node.name,
            session=self.session,
            data=self.receiver.endpoint,
            control=self.control.endpoint,
            decisions=self.publisher.endpoint,
            http_port=self.http_port,
            backend=self._info.backend,
            tck=self._info.tck,
            slots=len(self._workspaces),
            **{f"slot_{kind}_bytes": nbytes for kind, nbytes in memory_status(self._engine.memory).items()},
        )

    @property
    def state(self) -> RunState:
        """State of the run control."""
        return self.controller.state

    async def _warm_up(self) -> None:
        self._warming_up = True
        await in_daemon_thread(self._pipeline.warm_up)
        self._warming_up = False
        self._pipeline.start()
        self._gather.start()
        self._output.start()
        if self._histogram_files is not None:
            self._histogram_files.start()
        self.health.pipeline_tick_ns = self.clock.now_ns
        self.health.warmed_up = True

    def scrape(self) -> Callable[[], bytes]:
        """Take a snapshot; returns what makes the page of metrics of it, in any thread."""
        collector = NodeCollector(
            snapshot(self.counters),
            snapshot(self.health),
            self._info,
            self.status.state(),
            self._engine.memory,
            health_ns=self.clock.now_ns,
            monotonic_ns=self._clock_ns(),
            wall_s=time.time(),
            histograms=self._tally.since_start(),
            histogram_buckets=self.config.histograms.buckets,
        )
        return partial(render, collector)

    def histograms_page(self) -> bytes:
        """What /histograms shows: the histograms of the run that the node computes; in any thread."""
        run = self._tally.run
        contents = [] if run is None else self._tally.of_run(run) or []
        page = {
            **self._about,
            "run": run,
            "histograms": {content.shape.name: as_uhi(content) for content in contents},
        }
        return json.dumps(page).encode() + b"\n"

    def _bind(self) -> None:
        """Bind the sockets, and make all parts that need no file."""
        config = self.config
        self.access = AccessControl(
            config, self._context, self.counters.operation, self._crashed, clock_ns=self._clock_ns
        )
        self._closers.append(lambda _linger_ms: self.access.close())
        self.control = ControlSocket(
            self._context,
            config.network.control,
            self.counters,
            self.clock,
            self.access.guard(Endpoint.CONTROL),
            self.access.received(Endpoint.CONTROL),
        )
        self._closers.append(self.control.close)
        if config.tap.endpoint is not None:
            self.tap = InputTap(
                self._context,
                config.tap.endpoint,
                self.counters.tap,
                buffer_bytes=config.tap.buffer_bytes,
                prepare=self.access.guard(Endpoint.EVENTS),
                clock_ns=self._clock_ns,
            )
            self._closers.append(self.tap.close)
        executor = EffectExecutor(
            self._registry, self._acknowledgements, self.control, self.counters, self._submit, self._clock_ns, self.tap
        )
        self.feeder_protocol = FeederProtocol(
            self.builder,
            self._registry,
            self._acknowledgements,
            self.control,
            self.counters,
            executor.carry_out,
            lambda: self.state,
            self._finish_files,
            self._revoke_events,
            self._confirmed,
            self._supervised,
            node=config.node.name,
            session=self.session,
            max_fragment_bytes=config.network.max_frame_bytes - HEADER_SIZE,
            clock_ns=lambda: self.clock.now_ns,
        )
        self.controller = RunController(
            self.feeder_protocol,
            self.counters,
            warm_up=self._warm_up,
            reload=lambda: self._hot_reload.reload(),
            summary=lambda: json.dumps(self.status.summary()),
            failed=self._fail,
        )
        self._http_control = HttpControl(
            lambda: self.access.token,
            self.controller.execute,
            lambda failure: self.access.refused(Endpoint.HTTP, failure),
        )
        protocol, silence = self.feeder_protocol, self._silence
        self.status = NodeStatus(
            self._info,
            self.session,
            self.counters,
            protocol,
            lambda: self.state,
            silence,
            self._engine.memory,
            self._free_space,
            self._room,
            self.clock,
        )
        self.receiver = Receiver(
            self._context,
            config.network.data,
            self.builder,
            self._buffers,
            self.counters,
            executor.carry_out,
            max_frame_bytes=config.network.max_frame_bytes,
            received=self.access.received(Endpoint.DATA),
            prepare=self.access.guard(Endpoint.DATA),
            clock=self.clock,
            tap=self.tap,
        )
        self._closers.append(lambda _linger_ms: self.receiver.close())
        self.publisher = DecisionPublisher(
            self._context,
            config.network.decisions,
            self.counters.decisions,
            policy=config.decisions.policy,
            high_water_mark=config.decisions.queue,
            prepare=self.access.guard(Endpoint.DECISIONS),
        )
        self._closers.append(self.publisher.close)
        self.outputs = Outputs(
            self._context,
            config,
            self.counters,
            self.publisher,
            prepare=self.access.guard(Endpoint.EVENTS),
            clock_ns=self._clock_ns,
        )
        self._closers.append(self.outputs.close)
        self._batch_delivery = BatchDelivery(
            self.outputs, self._room, self.counters, protocol, self._fail, self._clock_ns
        )

    def _own_directory(self) -> None:
        """Lock the output directory, take over its files, and make the parts that write there."""
        config, output = self.config, self.config.output
        lock = DirectoryLock(output.directory)
        self._closers.append(lambda _linger_ms: lock.release())
        settings = StoreSettings(
            max_file_bytes=output.max_file_bytes,
            max_file_events=output.max_file_events,
            fsync=output.fsync,
            policies={EventStream.ACCEPTED: output.policy, EventStream.ERROR: output.error_policy},
        )
        self._store = take_over(
            output.directory, config.node.name, self.session, self.counters.writer, settings, boot=boot_id()
        )
        if self._engine.histograms:
            self._histogram_files = HistogramFiles(
                output.directory,
                config.node.name,
                f"{config.node.name}_{self.session}",
                self._tally,
                self.counters.writer,
                config.histograms.file_period_s,
                self._about,
                self._clock_ns,
            )
        if self._trigger is not None:
            log.info("tck_document", tck=self._trigger.name, file=self._store.keep_tck(self._trigger))
        self.feeder_protocol.remember(self._store.journal.content.done())
        self._pipeline = Pipeline(
            self._workspaces,
            len(self._engine.lines),
            self._engine.selected_words,
            self._engine.collections,
            self._tally,
            self._store.journal,
            self._slot_advanced,
            self._computed,
            lambda error: self._call_loop(self._device_lost, error),
            self._crashed,
            clock_ns=self._clock_ns,
        )
        self._output = OutputStage(
            self._store,
            lambda written: self._call_loop(self._batch_delivery.put, written),
            lambda receipt: self._call_loop(self.feeder_protocol.events_revoked, receipt),
            self._crashed,
        )
        engine = self._engine
        encoder = EventEncoder(engine.tck, engine.line_routing, engine.collections, checksums=output.checksums)
        gatherer = EventGatherer(
            self._buffers, encoder, node=config.node.name, tck=engine.tck, n_lines=len(engine.lines)
        )
        self._gather = GatherStage(
            gatherer,
            self._room,
            lambda batch: self._call_loop(self.feeder_protocol.slot_freed, batch),
            self._output.submit,
            self._crashed,
        )
        self._periodic_tasks = PeriodicTasks(
            (self.control, self.receiver) if self.tap is None else (self.control, self.receiver, self.tap),
            self.feeder_protocol,
            lambda: self.state,
            self.counters,
            self.health,
            self._pipeline,
            self._store,
            self.outputs,
            self._room,
            self._silence,
            self._notifier,
            self._fail,
            self.clock,
        )

    async def run(self) -> int:
        """Serve until `request_stop` or a failure; then drain and close. Returns the exit code of the process."""
        await self._stop.wait()
        if self.state is not RunState.ERROR:
            self.health.draining = True
            self._notifier.stopping("draining")
            log.info("draining", state=self.state)
            await self.controller.shut_down()
        await self._close()
        log.info("stopped", exit_code=self._exit_code)
        return self._exit_code

    def request_stop(self) -> None:
        """Drain and stop; a second call abandons what is not finished. The loop's thread only."""
        if self._stop.is_set():
            self._exit_code = 1
            self._stop_now.set()
            self.controller.abandon()
        self._stop.set()

    def request_reload(self) -> None:
        """Read the configuration file again, as the reload command does; the loop's thread only."""
        self.controller.execute(CommandName.RELOAD)

    def _fail(self, reason: str, **details: object) -> None:
        """Go to ERROR: stop, and acknowledge nothing that is not finished; the feeders send it to the next session."""
        if self.state is RunState.ERROR:
            return
        self.controller.fail()
        self._exit_code = 1
        self.health.draining = True
        log.critical("failed", reason=reason, **details)
        self._notifier.status(f"failed: {reason}")
        self._stop.set()

    # From other threads

    def _call_loop(self, callback: Callable[..., object], *arguments: object) -> None:
        try:
            self._loop.call_soon_threadsafe(callback, *arguments)
        except RuntimeError:
            # A back end that hangs may keep its thread beyond the end of the loop.
            if not self._loop.is_closed():
                raise

    def _slot_advanced(self, advanced: SlotAdvanced) -> None:
        self._call_loop(self.feeder_protocol.slot_advanced, advanced)

    def _computed(self, computed: ComputedBatch) -> None:
        self._gather.submit(computed)
        if computed.error is not None or self._failed_batches:
            self._call_loop(self._note_outcome, computed.error)

    def _crashed(self, error: BaseException) -> None:
        self._call_loop(self._fail, f"a thread crashed: {error!r}")

    # In the loop

    def _submit(self, batch: Batch) -> None:
        self._pipeline.submit(batch)

    def _finish_files(self, summary: dict[str, Any], over: bool) -> None:
        self._gather.submit(FinishFiles(summary, over))
        if self._histogram_files is not None:
            self._histogram_files.finish(summary["run"])

    def _revoke_events(self, request: RevokeEvents) -> None:
        self._gather.submit(request)

    def _confirmed(self, run: int, below: int) -> None:
        self._gather.submit(Confirmed(run, below))

    def _supervised(self, run: int) -> None:
        self._gather.submit(Supervised(run))

    def _note_outcome(self, error: str | None) -> None:
        if error is None:
            self._failed_batches = 0
            return
        self.counters.backend_errors += 1
        self._failed_batches += 1
        log.error("batch_failed", error=error, in_a_row=self._failed_batches)
        if self._failed_batches >= MAX_FAILED_BATCHES:
            self._fail("the back end fails on every batch", error=error)

    def _device_lost(self, error: str) -> None:
        """No batch can be computed in this process. What the back end had is computed by the next session."""
        self.counters.backend_errors += 1
        self._fail("the device is lost", error=error)

    def _loop_exception(self, _loop: asyncio.AbstractEventLoop, context: dict[str, Any]) -> None:
        """A callback has raised: a defect. What it has left behind cannot be trusted."""
        self.counters.count_exception("loop")
        self._fail(f"{context.get('message')}: {context.get('exception')!r}")

    async def _close(self) -> None:
        self.receiver.close()
        stopped = await self._end(self._pipeline.stop) and not self._warming_up
        self.backend_hangs = not stopped
        gathered = await self._end(self._gather.stop)
        written = await self._end(self._output.stop) and gathered
        if not (stopped and written):
            self._fail("the back end hangs" if not stopped else "the disk does not take the last events")
        if self._histogram_files is not None and not await self._end(self._histogram_files.stop):
            log.error("histograms_not_written", error="the thread has not ended in time")
        self._periodic_tasks.stop()
        await self._batch_delivery.stop()
        if not self.feeder_protocol.check_accounts():
            self._exit_code = 1
        self.feeder_protocol.say_goodbye()
        await self._close_sockets(LINGER_MS)
        if stopped:
            self._engine.close()
        self._notifier.close()

    async def _end(self, stop: Callable[[float], bool]) -> bool:
        """End a thread by its `stop`; True if it ended in the time that it has, which a second `request_stop` cuts."""
        if not self._stop_now.is_set():
            ending = asyncio.create_task(in_daemon_thread(partial(stop, STOP_SECONDS)))
            hurry = asyncio.create_task(self._stop_now.wait())
            await asyncio.wait((ending, hurry), return_when=asyncio.FIRST_COMPLETED)
            hurry.cancel()
            if ending.done():
                return ending.result()
            ending.cancel()
        return await in_daemon_thread(partial(stop, ABANDON_SECONDS))

    async def _close_sockets(self, linger_ms: int) -> None:
        if self._http is not None:
            await self._http.close()
        self._free_space.stop()
        for close in self._closers:
            close(linger_ms)
        # Waits for what is queued to leave.
        await in_daemon_thread(self._context.term)
