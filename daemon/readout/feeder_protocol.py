"""The conversation with the feeders: hellos, credits, acknowledgements, revocations, and the end of a run.

No sockets and no clock of its own: messages come in by calls, answers leave through `FeederConnections`, and the
effects of the builder are carried out by the `EffectExecutor`. All calls come from the event loop.
"""

from collections.abc import Callable, Sequence
from typing import Any

from hltnode.daemon.common.log import get_logger
from hltnode.daemon.common.mep_ranges import as_ranges
from hltnode.daemon.common.rate_limit import RateLimit
from hltnode.daemon.common.vocabulary import UNKNOWN_FEEDER, HelloRefusal
from hltnode.daemon.event_building.accounting import accounting, closes
from hltnode.daemon.event_building.event_builder import EventBuilder
from hltnode.daemon.event_building.run_summary import RunSummary
from hltnode.daemon.event_building.stimuli_and_effects import (
    Abandon,
    AcknowledgedBelow,
    AwaitedFeeder,
    AwaitFeeders,
    Batch,
    CloseOpen,
    Drain,
    Effect,
    EndRun,
    Resume,
    RevokeMeps,
    SetTimes,
    SlotAdvanced,
    SlotFreed,
    StartRun,
    Tick,
)
from hltnode.daemon.monitoring.counters import Counters
from hltnode.daemon.output.output_stage import RevokeEvents
from hltnode.daemon.readout.acknowledgements import Acknowledgements
from hltnode.daemon.readout.effect_executor import FeederConnections
from hltnode.daemon.readout.feeder_registry import FeederRegistry, HelloRefusedError, RunStart
from hltnode.protocol.transport.control_messages import ControlMessage
from hltnode.protocol.transport.feeder_messages import Ack, Credit, EndOfRun, Error, Goodbye, Hello, Revoked, Welcome
from hltnode.protocol.transport.run_control_messages import RunState

# When the last feeder has announced the end of the run, last fragments may still be in the sockets.
END_OF_RUN_PATIENCE_NS = 2_000_000_000
# No feeder of ours revokes more MEPs in one range: a node cannot have more in its slots.
MAX_REVOKED = 65_536
LOG_INTERVAL_NS = 10_000_000_000
# Lines of the builder's history in the log when an identity is broken; the summary of the run has all of them.
LOGGED_HISTORY = 32

log = get_logger("feeder_protocol")


class FeederProtocol:
    """What the node answers to feeders, and when a run begins and ends.

    Args:
        carry_out: carries out effects of the builder.
        node_state: state of the run control; feeders are taken while it is running or paused.
        finish_run: called with the summary of a run when it is over (True), or when this session leaves it (False).
        revoke_events: hands the MEPs that went to another node to the outputs.
    """

    def __init__(
        self,
        builder: EventBuilder,
        registry: FeederRegistry,
        acknowledgements: Acknowledgements,
        connections: FeederConnections,
        counters: Counters,
        carry_out: Callable[[Sequence[Effect]], None],
        node_state: Callable[[], RunState],
        finish_run: Callable[[dict[str, Any], bool], None],
        revoke_events: Callable[[RevokeEvents], None],
        *,
        node: str,
        session: str,
        max_fragment_bytes: int,
        clock_ns: Callable[[], int],
    ) -> None:
        self.builder = builder
        self.registry = registry
        self._acknowledgements = acknowledgements
        self._connections = connections
        self._counters = counters
        self._carry_out = carry_out
        self._node_state = node_state
        self._finish_run = finish_run
        self._revoke_events = revoke_events
        self._summary = RunSummary(counters, builder, node=node, session=session)
        self._node = node
        self._session = session
        self._configured_run = registry.run or 0
        self._max_fragment_bytes = max_fragment_bytes
        self._clock_ns = clock_ns
        self._limit = RateLimit(LOG_INTERVAL_NS, clock_ns)
        self._starts = 0
        self._run_over = False
        self._last_traffic_ns = 0
        self._last_received = 0
        self._awaited: tuple[AwaitedFeeder, ...] = ()

    # Control messages

    def message_arrived(self, identity: bytes, message: ControlMessage) -> None:
        """Take one message of a feeder."""
        now_ns = self._clock_ns()
        feeder = self.registry.message_came(now_ns, identity)
        if isinstance(message, Hello):
            self._hello(now_ns, identity, message)
        elif feeder is None:
            self._connections.send((identity,), Error(UNKNOWN_FEEDER, "say hello first"))
        elif isinstance(message, EndOfRun) and message.run == self.registry.run:
            self.registry.end_of_run(feeder, message)
            log.info("feeder_ended_run", feeder=feeder.hello.feeder, run=message.run, last_mep=message.last_mep)
        elif isinstance(message, Revoked) and message.run == self.registry.run:
            self._revoked(identity, message)
        elif isinstance(message, Goodbye):
            self.registry.goodbye(feeder)
            log.info("feeder_left", feeder=feeder.hello.feeder, reason=message.reason)
        else:
            self._counters.control_messages_rejected += 1
            self._connections.send(
                (identity,), Error("unexpected", f"{type(message).__name__} is not for the node now")
            )

    def _hello(self, now_ns: int, identity: bytes, hello: Hello) -> None:
        state = self._node_state()
        waiting = state is RunState.PAUSED and not self.registry.started
        if waiting or state not in (RunState.RUNNING, RunState.PAUSED):
            # No error: the feeder repeats its hello until the node is started.
            self._connections.send((identity,), Goodbye(f"node is {state}"))
            return
        if (
            state is RunState.RUNNING
            and hello.run != self.registry.run
            and self.registry.is_deserted(now_ns)
            and self.builder.is_idle
        ):
            # All feeders of the last run ended without a goodbye, and another run is to begin.
            if self.registry.started and not self._run_over:
                self._end_run()
            self._forget_run()
        try:
            self._refuse_double(now_ns, hello)
            start = self.registry.hello(now_ns, identity, hello)
            if start is not None:
                self._start_run(now_ns, start)
        except HelloRefusedError as error:
            self._counters.control_messages_rejected += 1
            self._counters.hellos_refused[error.reason] += 1
            if self._limit.due(("hello", error.reason)) is not None:
                log.warning("hello_refused", feeder=hello.feeder, reason=error.reason, text=str(error))
            self._connections.send((identity,), Error(error.reason, str(error)))
            return
        run = hello.run
        self._connections.send((identity,), self._welcome(run))
        if self.builder.run == run and self.registry.started:
            floor = self.registry.floor()
            self.builder.handle(now_ns, AcknowledgedBelow(floor))
            self._acknowledgements.acknowledged_below(floor)
            acked = self._acknowledgements.ranges(hello.first_mep)
            if acked:
                self._connections.send((identity,), Ack(run, acked))
            self._connections.send((identity,), Credit(run, self.builder.window.limit))

    def _welcome(self, run: int) -> Welcome:
        return Welcome(self._node, self._session, run, self._max_fragment_bytes)

    def _refuse_double(self, now_ns: int, hello: Hello) -> None:
        """A process that was restarted takes its place, one that is started a second time does not.

        They differ in the connection of the first one, which ends with its process. The welcome that probes for it
        contains nothing new for a feeder of this run.
        """
        rival = self.registry.rival(now_ns, hello)
        if rival is not None and self._connections.reaches(rival.identity, self._welcome(rival.hello.run)):
            raise HelloRefusedError(
                HelloRefusal.NAME_TAKEN,
                # Not its session: with that, the receiver of this answer could send a hello in its place.
                f"another process feeds as {hello.feeder}, "
                f"its last message came {(now_ns - rival.last_message_ns) / 1e9:.1f} s ago",
            )

    def _start_run(self, now_ns: int, start: RunStart) -> None:
        done = self._acknowledgements.earlier(start.run)
        try:
            effects = self.builder.handle(
                now_ns, StartRun(start.run, start.sources, start.first_mep, start.events_per_mep, done)
            )
        except ValueError as error:
            self.registry.finish_run()
            raise HelloRefusedError(HelloRefusal.RUN_CANNOT_START, str(error)) from error
        self._run_over = False
        self._awaited = ()
        self._acknowledgements.begin(start.run)
        self._summary.begin()
        log.info(
            "run_started",
            run=start.run,
            sources=len(start.sources),
            first_mep=start.first_mep,
            events_per_mep=start.events_per_mep,
        )
        self._carry_out(effects)

    def _revoked(self, identity: bytes, message: Revoked) -> None:
        """Drop MEPs that went to another node while this one was lost: none of their events may stay here."""
        meps = {m for first, last in message.meps for m in range(first, min(last, first + MAX_REVOKED) + 1)}
        log.warning("meps_revoked", run=message.run, meps=len(meps), first=min(meps, default=None))
        in_slots = self.builder.meps_in_slots()
        self._carry_out(self.builder.handle(self._clock_ns(), RevokeMeps(tuple(meps))))
        self._acknowledgements.revoke(meps, in_slots)
        self._revoke_events(RevokeEvents(message.run, frozenset(meps), frozenset(meps & in_slots), (identity, message)))

    def events_revoked(self, receipt: tuple[bytes, Revoked]) -> None:
        """The files hold nothing of revoked MEPs any more: confirm it to the feeder that asked for it."""
        identity, message = receipt
        self._connections.send((identity,), message)

    # The pipeline and time

    def slot_advanced(self, advanced: SlotAdvanced) -> None:
        """The pipeline is further with a slot."""
        self._carry_out(self.builder.handle(self._clock_ns(), advanced))

    def batch_done(self, batch: Batch) -> None:
        """Decisions are out and events are safe: acknowledge, and free the slot."""
        meps = [mep.mep for mep in batch.meps]
        self._acknowledgements.finish(meps)
        self._counters.meps_acknowledged += len(meps)
        # The credits go first: an acknowledgement takes its MEP from what a feeder counts against them.
        self._carry_out(self.builder.handle(self._clock_ns(), SlotFreed(batch.slot)))
        self._connections.send(self.registry.identities(), Ack(batch.run, tuple(as_ranges(meps))))

    def tick(self, now_ns: int) -> None:
        """Check deadlines, feeders and the end of the run; to be called when the sockets have been read."""
        awaited = self.registry.awaited(now_ns) if self.registry.started else ()
        if awaited != self._awaited:
            self._awaited = awaited
            self.builder.handle(now_ns, AwaitFeeders(awaited))
        self._carry_out(self.builder.handle(now_ns, Tick()))
        if self._counters.fragments_received != self._last_received:
            self._last_received = self._counters.fragments_received
            self._last_traffic_ns = now_ns
        if not self._run_over and self._has_ended(now_ns):
            self._end_run()
        if self._run_over and self.registry.started and self.registry.is_deserted(now_ns):
            self._forget_run()

    def _has_ended(self, now_ns: int) -> bool:
        if not self.registry.all_ended(now_ns) or not self.builder.is_idle:
            return False
        return self.registry.is_satisfied() or now_ns - self._last_traffic_ns > END_OF_RUN_PATIENCE_NS

    def _end_run(self) -> None:
        self._run_over = True
        self._summarise(over=True)

    def leave_run(self) -> None:
        """This session ends while the run goes on: write what it has done."""
        if self.registry.started and not self._run_over:
            self._run_over = True
            self._summarise(over=False)

    def _summarise(self, *, over: bool) -> None:
        summary = self._summary.end()
        if not summary["accounting_closes"]:
            self._report_broken(summary)
            summary["history"] = self.builder.recent_history()
        self._finish_run(summary, over)

    def _report_broken(self, accounts: dict[str, Any]) -> None:
        self._counters.accounting_broken += 1
        history = self.builder.recent_history()[-LOGGED_HISTORY:]
        log.critical("accounting_broken", **{"run": self.builder.run, **accounts}, history=history)

    def _forget_run(self) -> None:
        self.registry.finish_run()
        self._acknowledgements.forget()

    def check_accounts(self) -> bool:
        """Log the accounts; critical, counted and False if a fragment or MEP is in no class."""
        accounts = accounting(self._counters, self.builder)
        if closes(accounts):
            log.info("run_summary", run=self.builder.run, objects=dict(self._counters.objects), **accounts)
            return True
        self._report_broken(accounts)
        return False

    # Run control

    def open_runs(self, run: int | None) -> int:
        """Take feeders from now on: of this run, or as configured. Returns the run, 0 for that of the first feeder."""
        if self._starts:
            # Feeders send what they kept of a stopped run only to a session that they do not know.
            self._session = f"{self._session.partition('.')[0]}.{self._starts}"
        self._starts += 1
        taken = self._configured_run if run is None else run
        self.registry.take_run(taken)
        return taken

    def pause(self) -> None:
        """Grant no more until `resume`; what was granted may still come."""
        self._carry_out(self.builder.handle(self._clock_ns(), Drain()))

    def resume(self) -> None:
        """Grant again."""
        self._carry_out(self.builder.handle(self._clock_ns(), Resume()))

    def set_times(self, mep_timeout_ms: int, flush_deadline_ms: int) -> None:
        """Other deadlines from now on."""
        times = SetTimes(mep_timeout_ms * 1_000_000, flush_deadline_ms * 1_000_000)
        self._carry_out(self.builder.handle(self._clock_ns(), times))

    def close_run(self) -> None:
        """The drain is over: leave the run, if there was one, and forget its feeders."""
        if self.registry.started and not self._run_over and self.builder.run is not None:
            self._acknowledgements.leave(self.builder.run)
            self.leave_run()
        self.say_goodbye()
        self._forget_run()

    def abandon(self) -> None:
        """Drop MEPs that are open, and do not wait for what is in the pipeline."""
        self._carry_out(self.builder.handle(self._clock_ns(), EndRun()))
        self._carry_out(self.builder.handle(self._clock_ns(), Abandon()))
        unacknowledged = sum(len(slot.meps) for slot in self.builder.pool.slots)
        log.critical(
            "abandoned",
            run=self.builder.run,
            meps=self._counters.meps_abandoned,
            fragments=self._counters.fragments_abandoned,
            built_but_unacknowledged_meps=unacknowledged,
        )

    def close_open(self) -> None:
        """Build what is there and open nothing more: the drain is over."""
        self._carry_out(self.builder.handle(self._clock_ns(), EndRun()))
        self._carry_out(self.builder.handle(self._clock_ns(), CloseOpen()))

    def say_goodbye(self) -> None:
        """Announce to the feeders that this session ends; they wait for the next one."""
        self._connections.send(self.registry.identities(), Goodbye("session ends"))

    def feeders(self, now_ns: int) -> list[dict[str, object]]:
        """The feeders for /status."""
        return [feeder.describe(now_ns) for feeder in self.registry.feeders()]
