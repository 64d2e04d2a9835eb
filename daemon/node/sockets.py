"""The sockets of a node, with their readers and writers."""

import asyncio
from collections.abc import Callable

import zmq

from hltnode.client.keys import load_client_keys
from hltnode.daemon.common.vocabulary import Endpoint
from hltnode.daemon.node.batch_path import BatchPath
from hltnode.daemon.node.core import NodeCore
from hltnode.daemon.node.sizing import request_limits
from hltnode.daemon.output.output_set import Outputs
from hltnode.daemon.output.output_sockets import DecisionPublisher
from hltnode.daemon.readout.builder_control import BuilderControl
from hltnode.daemon.readout.control_socket import ControlSocket
from hltnode.daemon.readout.effect_executor import EffectExecutor, FeederConnections
from hltnode.daemon.readout.feeder_protocol import FeederProtocol
from hltnode.daemon.readout.frame_handler import FrameHandler
from hltnode.daemon.readout.input_tap import InputTap
from hltnode.daemon.readout.mep_tap import MepTap
from hltnode.daemon.readout.receiver import Receiver
from hltnode.daemon.requests.request_socket import RequestSocket
from hltnode.daemon.security.access_control import AccessControl
from hltnode.daemon.shadow.shadow_intake import CONTROL_ENDPOINT, DATA_ENDPOINT, ShadowIntake
from hltnode.daemon.shared_memory.receiver import MemoryReceiver
from hltnode.daemon.udp.local_feeder import ConnectionsWithUdp, LocalFeeder
from hltnode.daemon.udp.receiver import UdpReceiver
from hltnode.protocol.transport.frame_header import HEADER_SIZE
from hltnode.protocol.transport.run_control_messages import RunState

Context = zmq.Context[zmq.Socket[bytes]]


class NodeSockets:
    """Access control and the sockets for feeders, decisions and events. Call `bind` first.

    Args:
        state: state of the run control.
        crashed: called from a thread that cannot continue.
    """

    def __init__(
        self, core: NodeCore, path: BatchPath, state: Callable[[], RunState], crashed: Callable[[BaseException], None]
    ) -> None:
        self._core = core
        self._path = path
        self._state = state
        self._crashed = crashed
        self._context: Context = zmq.Context(core.config.network.io_threads)
        self._closers: list[Callable[[int], None]] = []
        self.tap: InputTap | None = None
        self.mep_tap: MepTap | None = None
        self.shadow: ShadowIntake | None = None
        self.memory_receiver: MemoryReceiver | None = None
        self.udp_receiver: UdpReceiver | None = None
        self.requests: RequestSocket | None = None

    def bind(self) -> None:
        """Bind all sockets. After a failure, `close` closes those already bound.

        Raises:
            SecurityError: a key, an allow-list or the token cannot be used.
            BindError: an endpoint cannot be bound.
        """
        core, config, counters = self._core, self._core.config, self._core.counters
        self.access = AccessControl(config, self._context, counters.operation, self._crashed, clock_ns=core.clock_ns)
        self._closers.append(lambda _linger_ms: self.access.close())
        self.control = ControlSocket(
            self._context,
            config.network.control,
            counters,
            core.clock,
            self.access.guard(Endpoint.CONTROL),
            self.access.received(Endpoint.CONTROL),
        )
        self._closers.append(self.control.close)
        if config.tap.endpoint is not None:
            self.tap = InputTap(
                self._context,
                config.tap.endpoint,
                counters.tap,
                buffer_bytes=config.tap.buffer_bytes,
                prepare=self.access.guard(Endpoint.EVENTS),
                clock_ns=core.clock_ns,
            )
            self._closers.append(self.tap.close)
        if config.tap.meps_endpoint is not None:
            self.mep_tap = MepTap(
                self._context,
                config.tap.meps_endpoint,
                counters.mep_tap,
                core.buffers,
                lambda: core.builder.events_per_mep,
                core.info.chain,
                prescale=config.tap.meps_prescale,
                buffer_bytes=config.tap.buffer_bytes,
                prepare=self.access.guard(Endpoint.EVENTS),
                clock_ns=core.clock_ns,
            )
            self._closers.append(self.mep_tap.close)
        connections: FeederConnections = self.control
        if config.udp.endpoint is not None:
            connections = ConnectionsWithUdp(self.control, lambda message: self._udp_feeder.message(message))
        executor = EffectExecutor(
            core.registry,
            core.acknowledgements,
            connections,
            counters,
            self._path.submit,
            core.clock_ns,
            self.taps,
            core.clock.true_time_of,
        )
        self.builder_control = BuilderControl(
            core.builder,
            core.registry,
            core.acknowledgements,
            connections,
            counters,
            executor.carry_out,
            self._path.finish_files,
            self._path.confirmed,
            node=config.node.name,
            session=core.session,
            clock_ns=core.clock.current_ns,
        )
        self.feeder_protocol = FeederProtocol(
            self.builder_control,
            connections,
            counters,
            self._state,
            self._path.revoke_events,
            self._path.supervised,
            self._path.input_known,
            node=config.node.name,
            session=core.session,
            max_fragment_bytes=config.network.max_frame_bytes - HEADER_SIZE,
            clock_ns=core.clock.current_ns,
        )
        handler = FrameHandler(
            core.builder,
            core.buffers,
            counters,
            executor.carry_out,
            core.registry.permissions.refusal,
            core.registry.permissions.answers,
            max_frame_bytes=config.network.max_frame_bytes,
            clock=core.clock,
            copy_threads=config.network.copy_threads,
            tap=self.tap,
        )
        self.receiver = Receiver(
            self._context,
            config.network.data,
            handler,
            max_frame_bytes=config.network.max_frame_bytes,
            received=self.access.received(Endpoint.DATA),
            prepare=self.access.guard(Endpoint.DATA),
        )
        self._closers.append(lambda _linger_ms: self.receiver.close())
        if config.shared_memory.socket is not None:
            memory_receiver = self.memory_receiver = MemoryReceiver(
                config.shared_memory.socket,
                config.shared_memory,
                core.registry.knows,
                handler.shared_frames_arrived,
                handler.begin_turn,
                counters.shared_memory,
                core.clock_ns,
            )
            self._closers.append(lambda _linger_ms: memory_receiver.close())
        if config.udp.endpoint is not None:
            self._bind_udp(handler, executor)
        self.publisher = DecisionPublisher(
            self._context,
            config.network.decisions,
            counters.decisions,
            policy=config.decisions.policy,
            drop_after_ns=config.decisions.drop_after_ms * 1_000_000,
            high_water_mark=config.decisions.queue,
            topic=f"shadow/{config.node.name}".encode() if core.is_shadow else None,
            prepare=self.access.guard(Endpoint.DECISIONS),
        )
        self._closers.append(self.publisher.close)
        self.outputs = Outputs(
            self._context,
            config,
            counters,
            self.publisher,
            prepare=self.access.guard(Endpoint.EVENTS),
            clock_ns=core.clock_ns,
        )
        self._closers.append(self.outputs.close)
        self._bind_requests()
        if config.shadow.of is not None:
            self._make_shadow(config.shadow.of)

    def _make_shadow(self, tap: str) -> None:
        core, config = self._core, self._core.config
        keys = load_client_keys(config.shadow.server_key, config.shadow.key_file)
        self.receiver.bind_also(DATA_ENDPOINT)
        self.control.bind_also(CONTROL_ENDPOINT)

        def only(session: str) -> None:
            self.feeder_protocol.only_session = session

        self.shadow = ShadowIntake(
            self._context,
            tap,
            keys,
            core.counters.shadow,
            node=config.node.name,
            chain=core.info.chain,
            max_mep_bytes=config.builder.max_mep_bytes,
            max_frame_bytes=config.network.max_frame_bytes,
            only=only,
            clock_ns=core.clock_ns,
        )

    def _bind_udp(self, handler: FrameHandler, executor: EffectExecutor) -> None:
        core, udp = self._core, self._core.config.udp
        self._udp_feeder = LocalFeeder(
            self.feeder_protocol.message_arrived,
            session=core.session,
            chain=core.info.chain,
            sources=udp.sources,
            events_per_mep=udp.events_per_mep,
            max_fragment_bytes=core.config.network.max_frame_bytes - HEADER_SIZE,
            credits_grew=lambda: udp_receiver.schedule(),
        )
        udp_receiver = self.udp_receiver = UdpReceiver(
            udp,
            handler,
            self.builder_control,
            self._udp_feeder,
            core.counters.udp,
            executor,
            lambda run: self._path.store.journal.begun_below(run),
        )
        self._closers.append(lambda _linger_ms: udp_receiver.close())

    def _bind_requests(self) -> None:
        core, config, engine = self._core, self._core.config, self._core.request_engine
        if config.requests.endpoint is None:
            return
        if engine is None:
            raise ValueError("requests.endpoint needs an engine for requests")
        self.requests = RequestSocket(
            self._context,
            config.requests.endpoint,
            engine,
            request_limits(config),
            core.counters.requests,
            node=config.node.name,
            chain=core.info.chain,
            timeout_ns=config.requests.timeout_ms * 1_000_000,
            max_list_bytes=config.requests.max_list_bytes,
            prepare=self.access.guard(Endpoint.REQUESTS),
            received=self.access.received(Endpoint.REQUESTS),
            crashed=self._crashed,
            clock_ns=core.clock_ns,
        )
        self._closers.append(self.requests.close)
        core.conditions_of_runs.followers.append(self.requests.replace_constants)

    @property
    def taps(self) -> list[InputTap | MepTap]:
        """The taps of the input."""
        return [tap for tap in (self.tap, self.mep_tap) if tap is not None]

    @property
    def of_feeders(self) -> list[ControlSocket | Receiver | MemoryReceiver | UdpReceiver]:
        """The sockets that must be read before deadlines of feeders are checked."""
        parts = (self.control, self.receiver, self.memory_receiver, self.udp_receiver)
        return [part for part in parts if part is not None]

    def start_outputs(self, loop: asyncio.AbstractEventLoop) -> None:
        """Start to watch for consumers and for room for queued messages."""
        self.outputs.start(loop)
        for tap in self.taps:
            tap.start(loop)

    def close(self, linger_ms: int) -> None:
        """Close all bound sockets; queued messages may be sent for `linger_ms`."""
        for close in self._closers:
            close(linger_ms)

    def wait_closed(self) -> None:
        """Wait until queued messages are sent or their time is over."""
        self._context.term()
