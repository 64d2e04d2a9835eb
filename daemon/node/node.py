"""The node: sockets, builder, pipeline, outputs and HTTP in one process, from bind to drain.

Order of a start: bind the sockets, warm up the back end, then run; or wait for commands, if it shall not start by
itself. Order of a stop: no more credits, what was granted is built and computed, decisions, files and acknowledgements
go out, then everything is closed.
"""

import asyncio
import json
import secrets
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

import zmq

from hltnode.daemon.common.log import get_logger
from hltnode.daemon.common.peer import Peer
from hltnode.daemon.common.vocabulary import Door, EventStream, Outcome
from hltnode.daemon.compute.engine_interface import Engine
from hltnode.daemon.compute.pipeline import Batch, ComputedBatch, Pipeline
from hltnode.daemon.configuration.model import NodeConfig
from hltnode.daemon.event_building.event_builder import EventBuilder
from hltnode.daemon.event_building.slots import SlotPool
from hltnode.daemon.monitoring.counters import Counters
from hltnode.daemon.monitoring.health import Health
from hltnode.daemon.monitoring.http_server import HttpServer
from hltnode.daemon.monitoring.metrics import BuildInfo, NodeCollector, create_registry, render
from hltnode.daemon.node.batch_delivery import Delivery
from hltnode.daemon.node.hot_reload import Reloader
from hltnode.daemon.node.periodic_tasks import Heartbeat
from hltnode.daemon.node.sizing import builder_limits, slot_limits
from hltnode.daemon.node.status import NodeStatus, memory_status
from hltnode.daemon.node.systemd import Notifier
from hltnode.daemon.output.event_encoder import EventEncoder
from hltnode.daemon.output.event_writer import EventWriter
from hltnode.daemon.output.output_set import Outputs
from hltnode.daemon.output.output_sockets import DecisionPublisher
from hltnode.daemon.output.output_stage import FinishFiles, OutputStage, TakeBack
from hltnode.daemon.output.recovery import take_over
from hltnode.daemon.readout.feeder_protocol import RunCoordinator
from hltnode.daemon.readout.feeder_registry import FeederRegistry
from hltnode.daemon.readout.feeder_socket import ControlSocket
from hltnode.daemon.readout.receiver import Receiver
from hltnode.daemon.readout.silent_sources import SourceSilence
from hltnode.daemon.run_control.controller import RunOperator
from hltnode.daemon.run_control.http_control import HttpControl
from hltnode.daemon.security.access_control import Doorkeeper
from hltnode.protocol.transport.control import Command, CommandName, Reply, RunState
from hltnode.protocol.transport.frame_header import HEADER_SIZE
from hltnode.protocol.transport.messages import MAX_TEXT_LENGTH

# Acknowledgements and last decisions have so long to leave.
LINGER_MS = 500
STOP_SECONDS = 5.0
# After a second SIGTERM nobody waits for acknowledgements, only for files to be left whole.
ABANDON_SECONDS = 1.0
# A batch that fails may be a bad batch; so many in a row are a broken back end, and only a restart can help.
MAX_FAILED_BATCHES = 3

log = get_logger("service")

Context = zmq.Context[zmq.Socket[bytes]]


class Node:
    """One trigger node. `start`, then `run` until somebody calls `request_stop`; `run` returns the exit code.

    `config_file` is what a reload reads again.

    Raises (start):
        SecurityError: a key, an allow-list or the token cannot be used.
        zmq.ZMQError, OSError: an endpoint or the HTTP port cannot be bound, the output directory cannot be written.
        BackendError: the back end does not run an empty batch.
    """

    def __init__(
        self,
        config: NodeConfig,
        engine: Engine,
        *,
        backend: str,
        version: str,
        config_file: Path | None = None,
        clock_ns: Callable[[], int] = time.monotonic_ns,
    ) -> None:
        self.config = config
        self.counters = Counters()
        self.counters.operation.last_reload_s = time.time()
        self.counters.set_lines(engine.lines)
        self.session = secrets.token_hex(8)
        self._config_file = config_file
        self._engine = engine
        self._clock_ns = clock_ns
        now_ns = clock_ns()
        self.health = Health(
            loop_tick_ns=now_ns, pipeline_tick_ns=now_ns, feeders_expected=config.builder.feeders, configured=True
        )
        self._pool = SlotPool(config.pipeline.slots, slot_limits(config))
        self.builder = EventBuilder(self._pool, builder_limits(config), self.counters)
        self._info = BuildInfo(version=version, node=config.node.name, backend=backend, tck=f"0x{engine.tck:08X}")
        self._workspaces = [engine.create_workspace() for _ in self._pool.slots]
        self._buffers = [workspace.input_data.data for workspace in self._workspaces]
        self.coordinator = RunCoordinator(
            self.builder,
            FeederRegistry(
                run=config.node.run,
                feeders=config.builder.feeders,
                sources=config.builder.expected_sources,
                max_events_per_mep=config.pipeline.max_events,
            ),
            self.counters,
            self._submit,
            self._finish_files,
            self._take_back,
            node=config.node.name,
            session=self.session,
            max_fragment_bytes=config.network.max_frame_bytes - HEADER_SIZE,
            clock_ns=clock_ns,
        )
        self.operator = RunOperator(
            self.coordinator,
            self.counters,
            warm_up=self._warm_up,
            reload=lambda: self._reloader.reload(),
            summary=lambda: json.dumps(self.status.summary()),
            failed=self._fail,
        )
        self._notifier = Notifier()
        self._silence = SourceSilence(
            self.builder, self.counters, silent_ns=config.builder.silent_source_ms * 1_000_000, clock_ns=clock_ns
        )
        self.status = NodeStatus(
            self._info, self.session, self.counters, self.coordinator, self._silence, engine.memory, clock_ns
        )
        self._stop = asyncio.Event()
        self._closers: list[Callable[[int], None]] = []
        self._http: HttpServer | None = None
        self._exit_code = 0
        self._failed_batches = 0

    async def start(self) -> None:
        """Bind, warm up, and begin to take data."""
        self._loop = asyncio.get_running_loop()
        self._loop.set_exception_handler(self._loop_exception)
        config = self.config
        self._context: Context = zmq.Context(config.network.io_threads)
        try:
            self._bind()
            self._http = HttpServer(
                lambda: render(self._metrics), self.health, self.status.full, self._http_control.answer
            )
            self.http_port = await self._http.start(config.http.host, config.http.port)
            if config.node.autostart:
                await self.operator.configure_now()
        except BaseException:
            await self._close_sockets(linger_ms=0)
            raise
        self.doors.start(self._loop)
        self.receiver.start(self._loop)
        self.control.start(self._loop)
        self._delivery.start(self._loop)
        self._reloader = Reloader(
            config, self._config_file, self.doors, self.coordinator, self.counters.operation, self._notifier
        )
        self._heartbeat.start(self._loop)
        if config.node.autostart:
            self.operator.execute(CommandName.START)
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
        """Where the node is in its run control."""
        return self.operator.state

    async def _warm_up(self) -> None:
        await asyncio.to_thread(self._pipeline.warm_up)
        self._pipeline.start()
        self._output.start()
        self.health.pipeline_tick_ns = self._clock_ns()
        self.health.warmed_up = True

    def _bind(self) -> None:
        config = self.config
        self.doors = Doorkeeper(config, self._context, self.counters.operation, clock_ns=self._clock_ns)
        self._closers.append(lambda _linger_ms: self.doors.close())
        self._http_control = HttpControl(
            lambda: self.doors.token,
            self.operator.execute,
            lambda failure: self.doors.refused(Door.HTTP, failure),
        )
        output = config.output
        self._writer = EventWriter(
            output.directory,
            f"{config.node.name}_{self.session}",
            self.counters.writer,
            max_file_bytes=output.max_file_bytes,
            max_file_events=output.max_file_events,
            fsync=output.fsync,
            policies={EventStream.ACCEPTED: output.policy, EventStream.ERROR: output.error_policy},
        )
        journal = take_over(output.directory, config.node.name, f"{config.node.name}_{self.session}", output.fsync)
        self.coordinator.acknowledged.remember(
            {run: tuple(ledger.ranges()) for run, ledger in journal.content.done.items()}
        )
        self.receiver = Receiver(
            self._context,
            config.network.data,
            self.builder,
            self._buffers,
            self.counters,
            self.coordinator.carry_out,
            max_frame_bytes=config.network.max_frame_bytes,
            hwm=config.network.hwm,
            prepare=self.doors.guard(Door.DATA),
            clock_ns=self._clock_ns,
        )
        self._closers.append(lambda _linger_ms: self.receiver.close())
        self.control = ControlSocket(
            self._context,
            config.network.control,
            self.counters,
            self.coordinator.message_arrived,
            self._command_arrived,
            self.doors.guard(Door.CONTROL),
        )
        self._closers.append(self.control.close)
        self.coordinator.attach(self.control)
        self.publisher = DecisionPublisher(
            self._context,
            config.network.decisions,
            self.counters.decisions,
            policy=config.decisions.policy,
            high_water_mark=config.decisions.queue,
            prepare=self.doors.guard(Door.DECISIONS),
        )
        self._closers.append(self.publisher.close)
        self.outputs = Outputs(
            self._context,
            config,
            self.counters,
            self.publisher,
            prepare=self.doors.guard(Door.EVENTS),
            clock_ns=self._clock_ns,
        )
        self._closers.append(self.outputs.close)
        self._metrics = create_registry(NodeCollector(self.counters, self.health, self._info, self._engine.memory))
        self._pipeline = Pipeline(
            self._workspaces, self._pool.slots, self._computed, self._crashed, clock_ns=self._clock_ns
        )
        self._output = OutputStage(
            self._workspaces,
            self._buffers,
            self._writer,
            journal,
            EventEncoder(self._engine.tck, len(self._engine.lines)),
            lambda written: self._call_loop(self._delivery.put, written),
            lambda receipt: self._call_loop(self.coordinator.taken_back, receipt),
            self._crashed,
            node=config.node.name,
            tck=self._engine.tck,
            hand_on_events=config.hands_on_events,
        )
        self._delivery = Delivery(self.outputs, self.counters, self.coordinator, self._fail, self._clock_ns)
        self._heartbeat = Heartbeat(
            self.coordinator,
            self.counters,
            self.health,
            self._pipeline,
            self._writer,
            self.outputs,
            self._silence,
            self._notifier,
            self._fail,
            self._clock_ns,
        )

    async def run(self) -> int:
        """Serve until `request_stop` or a failure; then drain and close. Returns the exit code of the process."""
        await self._stop.wait()
        if self.state is not RunState.ERROR:
            self.health.draining = True
            self._notifier.stopping("draining")
            log.info("draining", state=self.state)
            await self.operator.shut_down()
        await self._close()
        log.info("stopped", exit_code=self._exit_code)
        return self._exit_code

    def request_stop(self) -> None:
        """Drain and stop; a second call abandons what is not done. The loop's thread only."""
        if self._stop.is_set():
            self._exit_code = 1
            self.operator.abandon()
        self._stop.set()

    def request_reload(self) -> None:
        """Read the configuration file again, as the reload command does; the loop's thread only."""
        self.operator.execute(CommandName.RELOAD)

    def _fail(self, reason: str, **details: object) -> None:
        """Go to ERROR: stop without acknowledging what is not done, so that the feeders send it to the next session."""
        if self.state is RunState.ERROR:
            return
        self.operator.fail()
        self._exit_code = 1
        self.health.draining = True
        log.critical("failed", reason=reason, **details)
        self._notifier.status(f"failed: {reason}")
        self._stop.set()

    # From other threads

    def _call_loop(self, callback: Callable[..., object], *arguments: object) -> None:
        self._loop.call_soon_threadsafe(callback, *arguments)

    def _computed(self, computed: ComputedBatch) -> None:
        self._output.submit(computed)
        if computed.error is not None or self._failed_batches:
            self._call_loop(self._note_outcome, computed.error)

    def _crashed(self, error: BaseException) -> None:
        self._call_loop(self._fail, f"a thread crashed: {error!r}")

    # In the loop

    def _submit(self, batch: Batch) -> None:
        self._pipeline.submit(batch)

    def _finish_files(self, summary: dict[str, Any], over: bool) -> None:
        self._output.submit(FinishFiles(summary, over))

    def _take_back(self, request: TakeBack) -> None:
        self._output.submit(request)

    def _note_outcome(self, error: str | None) -> None:
        if error is None:
            self._failed_batches = 0
            return
        self.counters.backend_errors += 1
        self._failed_batches += 1
        log.error("batch_failed", error=error, in_a_row=self._failed_batches)
        if self._failed_batches >= MAX_FAILED_BATCHES:
            self._fail("the back end fails on every batch", error=error)

    def _loop_exception(self, _loop: asyncio.AbstractEventLoop, context: dict[str, Any]) -> None:
        """A callback has raised: a defect. What it has left behind cannot be trusted."""
        self.counters.count_exception("loop")
        self._fail(f"{context.get('message')}: {context.get('exception')!r}")

    def _command_arrived(self, peer: Peer, command: Command) -> Reply:
        if not self.doors.may_command(peer):
            self.counters.operation.commands[command.command, Outcome.REFUSED] += 1
            return Reply(command.request, False, self.state, "not an operator: see SECURITY.md")
        result = self.operator.execute(command.command, command.run)
        # The limit of the message is in bytes, and a file name in the text may be anything.
        text = result.text.encode("utf-8", "replace")[:MAX_TEXT_LENGTH].decode("utf-8", "ignore")
        return Reply(command.request, result.ok, result.state, text)

    async def _close(self) -> None:
        self.receiver.close()
        patience = ABANDON_SECONDS if self.operator.abandoned else STOP_SECONDS
        stopped = await asyncio.to_thread(self._pipeline.stop, patience)
        written = await asyncio.to_thread(self._output.stop, patience)
        if not (stopped and written) and self.state is not RunState.ERROR:
            self._fail("the back end hangs" if not stopped else "the disk does not take the last events")
        self._heartbeat.stop()
        await self._delivery.stop()
        if not self.coordinator.check_accounts():
            self._exit_code = 1
        self.coordinator.say_goodbye()
        await self._close_sockets(LINGER_MS)
        if stopped:
            self._engine.close()
        self._notifier.close()

    async def _close_sockets(self, linger_ms: int) -> None:
        if self._http is not None:
            await self._http.close()
        for close in self._closers:
            close(linger_ms)
        # Waits for what is queued to leave.
        await asyncio.to_thread(self._context.term)
