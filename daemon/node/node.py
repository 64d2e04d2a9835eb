"""The life of a node, from bind to drain.

Order of a start: bind the sockets and the HTTP port, lock the output directory, recover the files of earlier sessions,
warm up the back end, then run, or wait for commands without autostart. So a second node with the same configuration
fails before it changes any file. Order of a stop: grant no more credits, build and compute the MEPs of granted credits,
send decisions and acknowledgements, finish the files, then close everything.
"""

import asyncio
import json
import sys
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from functools import partial
from pathlib import Path
from typing import Any

from hltnode.daemon.common.log import get_logger
from hltnode.daemon.common.threads import call_in_loop, in_daemon_thread
from hltnode.daemon.common.vocabulary import DecisionThread, Endpoint, ErrorPlace, EventStream
from hltnode.daemon.common.zmq_sockets import BindError
from hltnode.daemon.compute.engine_interface import Engine
from hltnode.daemon.configuration.model import NodeConfig
from hltnode.daemon.monitoring.http_hosts import HostNames
from hltnode.daemon.monitoring.http_places import HttpPlaces
from hltnode.daemon.monitoring.http_server import HttpServer
from hltnode.daemon.node.batch_delivery import BatchDelivery
from hltnode.daemon.node.batch_path import BatchPath
from hltnode.daemon.node.core import NodeCore
from hltnode.daemon.node.event_pictures import Draw, EventPictures
from hltnode.daemon.node.hot_reload import HotReload
from hltnode.daemon.node.pages import NodePages
from hltnode.daemon.node.periodic_tasks import PeriodicTasks
from hltnode.daemon.node.sizing import gathered_streams, held_seconds
from hltnode.daemon.node.sockets import NodeSockets
from hltnode.daemon.node.status import NodeStatus, memory_status
from hltnode.daemon.run_control.controller import RunController
from hltnode.daemon.run_control.http_control import HttpControl
from hltnode.daemon.run_control.socket_control import SocketControl
from hltnode.daemon.run_control.state_machine import legal_commands
from hltnode.daemon.udp.receiver import UdpReceiver
from hltnode.processing.selection.configuration.tck import TckDocument
from hltnode.processing.selection.followed_conditions import FollowedConditions
from hltnode.protocol.transport.run_control_messages import CommandName, RunState

# Time limit for the last acknowledgements and decisions to be sent.
LINGER_MS = 500
STOP_SECONDS = 5.0
# A node stopped directly after its start may have to import uproot first, which takes seconds on a busy machine.
HISTOGRAM_SECONDS = 15.0
# A picture that takes longer is not worth waiting for.
PICTURE_SECONDS = 1.0
# Other threads, above all the connection limiter, get the interpreter after this time instead of 5 ms. With a busy
# event loop, counting 300 short connections took 1.4 s with 5 ms, and 0.4 s with this value.
SWITCH_SECONDS = 0.0005
# After a second SIGTERM the node waits only until its files are complete, not for acknowledgements.
ABANDON_SECONDS = 0.5

log = get_logger("node")


class Node:
    """One trigger node. Call `start`, then `run`, which returns the exit code after `request_stop`.

    trigger: the trigger configuration, written beside the events that its lines accept.
    config_file: the file that a reload reads.
    request_engine: computes the requests of clients, on the same back end; needed with `requests.endpoint`.
    gpu: the ordinal of the GPU that computes, whose state the metrics have; None without one.
    followed: prepares the trigger configuration with measured conditions; None: they do not change.
    draw: creates the function that draws accepted events for the status page; called in a thread at the first request.

    Raises (start):
        SecurityError: a key, an allow-list or the token cannot be used.
        BindError: an endpoint or the HTTP port cannot be bound.
        OSError: the output directory cannot be written.
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
        draw: Callable[[], Draw] | None = None,
        followed: FollowedConditions | None = None,
        request_engine: Engine | None = None,
        gpu: int | None = None,
        clock_ns: Callable[[], int] = time.monotonic_ns,
    ) -> None:
        self.config = config
        self._config_file = config_file
        core = self._core = NodeCore(
            config,
            engine,
            backend=backend,
            gpu=gpu,
            version=version,
            clock_ns=clock_ns,
            followed=followed,
            request_engine=request_engine,
        )
        self.counters, self.health, self.clock = core.counters, core.health, core.clock
        self.session, self.builder = core.session, core.builder
        self._pictures: EventPictures | None = None
        has_events = EventStream.ACCEPTED in gathered_streams(config)
        if draw is not None and config.http.event_picture_s > 0 and has_events:
            period_ns = int(config.http.event_picture_s * 1e9)
            self._pictures = EventPictures(draw, engine.lines, period_ns, clock_ns, lambda: engine.tck)
        self._path = BatchPath(core, trigger, self._fail, self._crashed)
        self._stop = asyncio.Event()
        self._stop_now = asyncio.Event()
        self._warming_up = False
        self._http: HttpServer | None = None
        self._exit_code = 0
        self.backend_hangs = False
        """The back end did not return a batch before the node closed: its thread cannot be ended."""

    async def start(self) -> None:
        """Bind, warm up, and start to take data."""
        self._loop = asyncio.get_running_loop()
        sys.setswitchinterval(SWITCH_SECONDS)
        self._loop.set_exception_handler(self._loop_exception)
        core, config = self._core, self.config
        self._sockets = NodeSockets(core, self._path, lambda: self.state, self._crashed)
        try:
            self._sockets.bind()
            self._make_control()
            http = self._http = self._http_server()
            with self._http_errors():
                self.http_port = await http.bind(config.http.host, config.http.port)
            revoked, deliver = self.feeder_protocol.events_revoked, self._batch_delivery.put
            send, written = self.publisher.send_at_once, self.publisher.send_written
            await in_daemon_thread(
                partial(self._path.open, self._loop, self.builder_control, revoked, deliver, send, written)
            )
            if (udp := self._sockets.udp_receiver) is not None:
                self._decide_directly(udp)
            self._make_periodic_tasks()
            core.free_space.start()
            core.gpu.start()
            with self._http_errors():
                await http.listen()
            if config.node.autostart:
                await self.controller.configure_now()
        except BaseException:
            if self._sockets.shadow is not None:
                await self._sockets.shadow.close()
            await self._close_sockets(linger_ms=0)
            raise
        self.receiver.start(self._loop)
        if self.memory_receiver is not None:
            self.memory_receiver.start(self._loop)
        if self._sockets.udp_receiver is not None:
            self._sockets.udp_receiver.start(self._loop)
        commands = SocketControl(self.controller, self.access.may_command, self.counters.operation)
        self.control.start(
            self._loop,
            self.feeder_protocol.message_arrived,
            commands.answer,
            # A shadow knows its only feeder by its session, and refuses the hellos of all others.
            (lambda _peer: True) if core.is_shadow else self.access.may_feed,
            self.builder_control.registry.is_welcome,
        )
        self._sockets.start_outputs(self._loop)
        if self._sockets.requests is not None:
            self._sockets.requests.start()
        if self._sockets.shadow is not None:
            self._sockets.shadow.start(self._loop, self._fail)
        self._batch_delivery.start(self._loop)
        self._hot_reload = HotReload(
            config,
            self._config_file,
            self.access,
            self.builder_control,
            self.counters.operation,
            core.notifier,
            core.conditions_of_runs,
        )
        self._periodic_tasks.start(self._loop)
        # Threads that this one starts inherit its CPUs, so the long-lived ones are started before.
        if config.node.autostart:
            core.scheduling.apply(DecisionThread.EVENT_LOOP)
        if core.collector is not None:
            core.collector.start()
        if config.node.autostart:
            self.controller.execute(CommandName.START)
        core.notifier.ready(f"data on {self.receiver.endpoint}")
        log.info(
            "ready",
            state=self.state,
            node=config.node.name,
            session=self.session,
            data=self.receiver.endpoint,
            control=self.control.endpoint,
            decisions=self.publisher.endpoint,
            http_port=self.http_port,
            backend=core.info.backend,
            chain=core.info.chain,
            tck=core.info.tck,
            slots=len(core.workspaces),
            **{f"slot_{kind}_bytes": nbytes for kind, nbytes in memory_status(core.engine.memory).items()},
        )

    def _make_control(self) -> None:
        """Create the parts that answer commands and requests and deliver to the bound sockets."""
        core, sockets = self._core, self._sockets
        self.access, self.control = sockets.access, sockets.control
        self.builder_control, self.feeder_protocol = sockets.builder_control, sockets.feeder_protocol
        self.receiver, self.publisher, self.outputs = sockets.receiver, sockets.publisher, sockets.outputs
        self.memory_receiver = sockets.memory_receiver
        self.controller = RunController(
            self.builder_control,
            self.counters,
            warm_up=self._warm_up,
            reload=lambda: self._hot_reload.reload(),
            summary=lambda: json.dumps(self.status.summary()),
            failed=self._fail,
            held_seconds=held_seconds(self.config),
        )
        self.status = NodeStatus(
            lambda: core.info,
            self.session,
            self.counters,
            self.builder_control,
            lambda: self.state,
            core.silence,
            core.engine.memory,
            core.free_space,
            core.room,
            self.clock,
            core.gpu,
            core.condition_readings,
            core.channel_readings,
            shadow_of=self.config.shadow.of,
            combiner=self.config.combiner.endpoint,
        )
        self._batch_delivery = BatchDelivery(
            self.outputs, core.room, self.counters, self.builder_control, self._fail, core.clock_ns, self._pictures
        )

    def _decide_directly(self, udp: UdpReceiver) -> None:
        direct = self._core.direct
        batch = None if direct is None else direct.workspace.compiled_batch
        if direct is not None and batch is not None and self._path.has_plain_decisions:
            path = self._path
            begin = partial(self._core.scheduling.apply, DecisionThread.RECEIVE)
            udp.decide_directly(batch, begin, path.may_decide_directly, path.leave_directly, direct.drop, self.config)
            path.pipeline.direct_since_ns = udp.direct_since_ns

    def _make_periodic_tasks(self) -> None:
        core = self._core
        self._periodic_tasks = PeriodicTasks(
            self._sockets.of_feeders,
            self.builder_control,
            lambda: self.state,
            self.counters,
            self.health,
            self._path.pipeline,
            self._path.store,
            self.outputs,
            core.room,
            core.silence,
            core.notifier,
            self._fail,
            self.clock,
            core.rates,
            self._ticked,
        )

    def _ticked(self) -> None:
        self.controller.tick()
        if self._core.collector is not None:
            self._core.collector.tick(self._core.clock.true_ns, is_idle=self.builder.is_idle)

    @contextmanager
    def _http_errors(self) -> Iterator[None]:
        http = self.config.http
        try:
            yield
        except OSError as error:
            raise BindError(f"tcp://{http.host}:{http.port}", error.errno) from error

    def _http_server(self) -> HttpServer:
        limits, operation = self.config.limits, self.counters.operation
        # The periodic tasks are created after the ports are bound and before the first request is answered.
        pages = self._pages = NodePages(
            self._core,
            self.status,
            lambda: self._periodic_tasks.note(),
            self._pictures,
            lambda: None if self.access.token is None else legal_commands(self.state),
        )
        commands = HttpControl(
            lambda: self.access.token,
            self.controller.execute,
            lambda failure, address: self.access.refused(Endpoint.HTTP, failure, address=address),
        )
        return HttpServer(
            pages.metrics,
            self.health,
            self.status.full,
            commands.answer,
            histograms=pages.histograms,
            page=pages.status_page,
            more=pages.more(),
            refused=lambda reason: operation.count_refused(Endpoint.HTTP, reason),
            places=HttpPlaces(limits.http_connections, limits.http_connections_per_address),
            hosts=HostNames(self.config.http.host, self.config.http.host_names or ()),
            monotonic_ns=lambda: self.clock.now_ns,
        )

    @property
    def state(self) -> RunState:
        """State of the run control."""
        return self.controller.state

    async def _warm_up(self) -> None:
        self._warming_up = True
        await in_daemon_thread(self._path.warm_up)
        self._warming_up = False
        self._path.start()
        self.health.pipeline_tick_ns = self.clock.now_ns
        self.health.warmed_up = True
        if not self.config.node.autostart:
            self._core.scheduling.apply(DecisionThread.EVENT_LOOP)

    async def run(self) -> int:
        """Run until `request_stop` or a failure, then drain and close; returns the exit code of the process."""
        await self._stop.wait()
        if self.state is not RunState.ERROR:
            self.health.draining = True
            self._core.notifier.stopping("draining")
            log.info("draining", state=self.state)
            if self._sockets.shadow is not None:
                await self._sockets.shadow.stop_reading()
            await self.controller.shut_down()
        await self._close()
        log.info("stopped", exit_code=self._exit_code)
        return self._exit_code

    def request_stop(self) -> None:
        """Drain and stop; a second call abandons unfinished MEPs. Called in the event loop only."""
        if self._stop.is_set():
            self._exit_code = 1
            self._stop_now.set()
            self.controller.abandon()
        self._stop.set()

    def request_reload(self) -> None:
        """Reload the configuration file, as the reload command does. Called in the event loop only."""
        self.controller.execute(CommandName.RELOAD)

    def _fail(self, reason: str, **details: object) -> None:
        """Enter ERROR and stop. Unfinished MEPs are not acknowledged; feeders send them to the next session."""
        if self.state is RunState.ERROR:
            return
        self.controller.fail()
        self._exit_code = 1
        self.health.draining = True
        log.critical("failed", reason=reason, **details)
        self._core.notifier.status(f"failed: {reason}")
        self._stop.set()

    def _crashed(self, error: BaseException) -> None:
        """From any thread."""
        call_in_loop(self._loop, self._fail, f"a thread crashed: {error!r}")

    def _loop_exception(self, _loop: asyncio.AbstractEventLoop, context: dict[str, Any]) -> None:
        """A callback raised an exception: a defect. The state of the node cannot be trusted any more."""
        self.counters.count_exception(ErrorPlace.LOOP)
        self._fail(f"{context.get('message')}: {context.get('exception')!r}")

    async def _close(self) -> None:
        path = self._path
        if self._sockets.shadow is not None:
            await self._sockets.shadow.close()
        self.receiver.close()
        if self.memory_receiver is not None:
            self.memory_receiver.close()
        if self._sockets.udp_receiver is not None:
            self._sockets.udp_receiver.close()
            self.backend_hangs = not self._sockets.udp_receiver.has_stopped
        requests = self._sockets.requests
        answered = requests is None or await self._end(requests.stop)
        stopped = await self._end(path.pipeline.stop) and answered and not self._warming_up
        stopped = stopped and not self.backend_hangs
        self.backend_hangs = not stopped
        left = path.hold is None or await self._end(path.hold.stop)
        gathered = await self._end(path.gather.stop) and left
        written = await self._end(path.output.stop) and gathered
        if not (stopped and written):
            self._fail("the back end does not respond" if not stopped else "the last events could not be written")
        if self._pictures is not None:
            await in_daemon_thread(partial(self._pictures.stop, PICTURE_SECONDS))
        if path.histogram_files is not None and not await self._end(path.histogram_files.stop, HISTOGRAM_SECONDS):
            log.error("histograms_not_written", error="not written in time: entries after the last .part file are lost")
        self._periodic_tasks.stop()
        if self._core.collector is not None:
            self._core.collector.stop()
        await self._batch_delivery.stop()
        if not self.builder_control.check_accounts():
            self._exit_code = 1
        self.builder_control.say_goodbye()
        await self._close_sockets(LINGER_MS)
        if stopped:
            self._core.engine.close()
        self._core.notifier.close()

    async def _end(self, stop: Callable[[float], bool], seconds: float = STOP_SECONDS) -> bool:
        """End a thread by its `stop`; False on timeout. A second `request_stop` shortens the timeout."""
        if not self._stop_now.is_set():
            ending = asyncio.create_task(in_daemon_thread(partial(stop, seconds)))
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
            self._pages.stop()
        self._core.free_space.stop()
        self._core.gpu.stop()
        self._sockets.close(linger_ms)
        self._path.release()
        await in_daemon_thread(self._sockets.wait_closed)
