"""The UDP intake in the event loop: it hands joined MEPs to the event builder.

Compiled threads receive and join the datagrams (`UdpIntake`). The loop is woken for each MEP that is ready, and takes
as many as the event builder has credits for. Others wait in the memory of the intake; when it is full, datagrams are
refused and counted (`no_room`).
"""

import asyncio
import errno
import time
from collections.abc import Callable

from hltnode.daemon._native import Outcome, UdpIntake
from hltnode.daemon.common.log import get_logger
from hltnode.daemon.common.rate_limit import RateLimit
from hltnode.daemon.common.vocabulary import UdpRefusal
from hltnode.daemon.common.zmq_sockets import BUDGET_NS, BindError
from hltnode.daemon.configuration.input_sections import UdpSection, udp_address
from hltnode.daemon.configuration.model import NodeConfig
from hltnode.daemon.event_building.stimuli_and_effects import DirectTimes
from hltnode.daemon.monitoring.counters import UdpCounters
from hltnode.daemon.readout.builder_control import BuilderControl
from hltnode.daemon.readout.effect_executor import EffectExecutor
from hltnode.daemon.readout.frame_handler import FrameHandler
from hltnode.daemon.udp.local_feeder import LocalFeeder
from hltnode.processing.framework.backends._executor import DirectBatch
from hltnode.protocol.transport.frame_header import HEADER_SIZE

LOG_INTERVAL_NS = 10_000_000_000
LONGEST_WAIT_NS = 1_000_000
"""For the end of a direct computation, before something that may refuse its MEP. A longer one is not used."""

log = get_logger("udp")


class UdpReceiver:
    """The UDP sockets. All calls come from the thread of the event loop.

    Args:
        begun_below: returns one more than the largest MEP id of a run that was computed, as the journal has it.

    Raises:
        BindError: the sockets cannot be bound.
    """

    def __init__(
        self,
        settings: UdpSection,
        handler: FrameHandler,
        control: BuilderControl,
        feeder: LocalFeeder,
        counters: UdpCounters,
        executor: EffectExecutor,
        begun_below: Callable[[int], int],
    ) -> None:
        assert settings.endpoint is not None
        self._handler = handler
        self._control = control
        self._builder = control.builder
        self._feeder = feeder
        self._counters = counters
        self._executor = executor
        self._begun_below = begun_below
        self._sources = settings.sources
        self._limit = RateLimit(LOG_INTERVAL_NS, time.monotonic_ns)
        self._loop: asyncio.AbstractEventLoop | None = None
        self._is_scheduled = False
        host, port = udp_address(settings.endpoint)
        try:
            self._intake = UdpIntake(
                handler.intake,
                host,
                port,
                n_sockets=settings.sockets,
                receive_bytes=settings.receive_bytes,
                packets_per_mep=settings.packets_per_mep,
                events_per_packet=settings.events_per_packet,
                open_meps=settings.open_meps,
                datagram_bytes=settings.max_datagram_bytes,
                flush_ns=settings.flush_us * 1000,
                sources=settings.sources,
                senders=[(sender.address, list(sender.sources)) for sender in settings.senders],
            )
        except OSError as error:
            raise BindError(settings.endpoint, error.errno) from error
        self._may_decide: Callable[[int], int] | None = None
        self.has_stopped = True
        """False after `close` if a kernel hangs in a thread of the intake."""
        # Late datagrams of a run that has ended must not begin it again; an operator may.
        control.when_opened.append(self._intake.reopen_run)
        self.endpoint = f"udp://{settings.endpoint.removeprefix('udp://').rpartition(':')[0]}:{self._intake.port}"

    def decide_directly(
        self,
        batch: DirectBatch,
        begin: Callable[[], object],
        may_decide: Callable[[int], int],
        send: Callable[[int, int, int], bool],
        drop: Callable[[], object],
        config: NodeConfig,
    ) -> None:
        """Have MEPs decided in the receiving threads while the node has nothing else to do. Call it before `start`.

        Args:
            batch: of a direct workspace.
            begin: called in each of these threads at its start.
            may_decide: returns one more than the largest MEP id of a run that may be decided now.
            send, drop: as of `UdpIntake.decide_directly`.
        """
        self._may_decide = may_decide
        self._intake.decide_directly(
            batch.address,
            batch,
            begin,
            send,
            drop,
            mep_bytes=config.builder.max_mep_bytes,
            mfp_bytes=config.network.max_frame_bytes - HEADER_SIZE,
            deadline_ns=config.latency.deadline_us * 1_000,
        )
        self._builder.before_refusals = self._deliver_decided
        self._control.when_freed.append(self._arm)

    def direct_since_ns(self) -> int:
        """When a receiving thread began to compute; 0: none does. Any thread."""
        return self._intake.computes_since_ns

    def start(self, loop: asyncio.AbstractEventLoop) -> None:
        """Start to receive."""
        self._loop = loop
        loop.add_reader(self._intake.fileno(), self._read)
        self._intake.start()

    def schedule(self) -> None:
        """Read in the next turn of the loop."""
        if self._loop is not None and not self._is_scheduled:
            self._is_scheduled = True
            self._loop.call_soon(self._scheduled_read)

    def close(self) -> None:
        """Stop receiving."""
        if self._loop is not None:
            self._loop.remove_reader(self._intake.fileno())
            self._loop = None
        self._deliver_decided()
        self.has_stopped = self._intake.stop()
        # Datagrams that were discarded since the last tick were not discarded because the node stops.
        self._count()
        run = self._intake.run
        self._intake.leave_run()
        before = self._counters.discarded
        self._count()
        if n_left := self._counters.discarded - before:
            log.warning("udp_datagrams_discarded", run=run, datagrams=n_left, reason="the node stops")

    def read(self) -> bool:
        """Hand over MEPs that are ready, and count; False if some are left for the next turn of the loop.

        Only ticks count: counting makes lists of all counters, and a decision would wait for it.
        """
        is_done = self._read()
        if self._loop is not None:
            self._count()
        return is_done

    def _read(self) -> bool:
        if self._loop is None:
            return True
        clock = self._handler.begin_turn()
        end_ns = time.monotonic_ns() + BUDGET_NS
        is_done = True
        if self._joins_run(clock.now_ns):
            is_done = self._hand_over(end_ns)
            self._follow_run(clock.now_ns)
            self._arm()
        if not is_done:
            self.schedule()
        return is_done

    def _scheduled_read(self) -> None:
        self._is_scheduled = False
        self._read()

    def _joins_run(self, now_ns: int) -> bool:
        """Whether the node accepts the run of the datagrams. Otherwise they are discarded, and counted."""
        run = self._intake.run
        if run is None or self._control.runs.closing is not None:
            return False
        if self._feeder.run == run:
            return True
        done = self._control.acknowledgements.done(run).ranges()
        # The id of a MEP that was computed before a kill is not used again: its decision may have left, and an event
        # that ended a session must not be charged to another one.
        first_mep = max(done[-1][1] + 1 if done else 0, self._begun_below(run))
        if self._feeder.join(now_ns, run, first_mep):
            self._intake.welcome(first_mep, self._feeder.token)
            log.info("udp_run_joined", run=run, first_mep=first_mep, sources=len(self._sources))
            return True
        self._intake.leave_run()
        if (left_out := self._limit.due("refused")) is not None:
            log.warning("udp_run_refused", run=run, text=self._feeder.refusal, left_out=left_out)
        return False

    def _arm(self) -> None:
        """Allow the next MEP to be decided directly, if it is certain to get a batch of its own."""
        builder, run = self._builder, self._intake.run
        if (
            self._may_decide is not None
            and run is not None
            and self._feeder.run == run
            and builder.run == run
            and builder.is_empty
            and not builder.closed
            and builder.window.outstanding > 0
            and len(builder.sources) == len(self._sources)
        ):
            self._intake.arm(min(self._may_decide(run), builder.floor + builder.span))

    def _deliver_decided(self) -> None:
        """Hand over a MEP that is decided, or the rest of it, before something could refuse it."""
        if self._may_decide is None or not self._intake.disarm(LONGEST_WAIT_NS):
            return
        self._handler.begin_turn()
        end_ns = time.monotonic_ns() + BUDGET_NS
        try:
            while (outcome := self._receive(end_ns)) is Outcome.LEFT:
                pass
            if outcome not in (Outcome.COMPLETE, Outcome.ENDED):
                log.critical("decided_mep_not_built", run=self._intake.run, mep=self._intake.next_mep)
        finally:
            self._executor.waited_ns, self._executor.direct = 0, None

    def _hand_over(self, end_ns: int) -> bool:
        try:
            while time.monotonic_ns() < end_ns:
                if self._receive(end_ns) in (Outcome.EMPTY, Outcome.PAUSED):
                    return True
            return False
        finally:
            self._executor.waited_ns, self._executor.direct = 0, None

    def _receive(self, end_ns: int) -> Outcome:
        clock, intake, handler, builder = self._handler.clock, self._intake, self._handler, self._builder
        # During a drain, MEPs of credits that were granted before still count.
        may_open = not builder.closed and builder.run == intake.run and builder.window.outstanding > 0
        outcome = intake.receive(clock.now_ns, clock.true_ns, end_ns, int(may_open))
        self._executor.waited_ns = max(0, clock.true_ns - intake.first_ns)
        self._executor.direct = None if (times := intake.decided) is None else DirectTimes(*times)
        handler.taken(outcome)
        if outcome is Outcome.LEFT:
            handler.frame_arrived(intake.left_frame())
        elif outcome is Outcome.ENDED:
            self._control.close_incomplete(intake.last_mep)
        elif outcome is Outcome.FAILED:
            raise OSError(errno.EIO, "a UDP socket cannot be read")
        return outcome

    def _follow_run(self, now_ns: int) -> None:
        intake, builder = self._intake, self._builder
        # MEPs that were refused as a whole are in none of the sets, and need no acknowledgement.
        pending = builder.unacknowledged_meps() | builder.open.keys() if self._feeder.is_hello_due(now_ns) else None
        if intake.is_run_over and builder.is_idle:
            if (following := intake.following_run) is not None:
                log.warning("udp_run_cut", run=intake.run, by_run=following, reason="the end of the run did not arrive")
            self._feeder.end(now_ns, intake.next_mep)
            intake.end_run()
        elif pending is not None:
            self._feeder.confirm(now_ns, min(pending, default=intake.next_mep))

    def _count(self) -> None:
        counts, counters = self._intake.counts(), self._counters
        counters.datagrams = counts["packets"]
        counters.bytes = counts["bytes"]
        counters.meps = counts["meps"]
        counters.meps_lost = counts["meps_lost"]
        counters.discarded = counts["discarded"]
        counters.dropped = counts["dropped"]
        counters.refused.update(zip(UdpRefusal, counts["refused"], strict=True))
        counters.missing.update(zip(self._sources, counts["missing"], strict=True))
        for burst, packets, missing, refused, meps in counts["bursts"]:
            counters.bursts += 1
            if (left_out := self._limit.due("burst")) is not None:
                log.info(
                    "burst_ended",
                    burst=burst,
                    datagrams=packets,
                    missing=missing,
                    refused=refused,
                    meps=meps,
                    left_out=left_out,
                )
