"""The conversation with the feeders: hellos, credits, acknowledgements, revocations.

No sockets and no clock of its own: messages come in by calls, answers leave through `FeederConnections`, and the
effects of the builder are carried out by the `EffectExecutor`. Which run is taken is decided by the `RunKeeper`. All
calls come from the event loop.
"""

from collections.abc import Callable, Mapping, Sequence
from itertools import chain, islice
from typing import Any

from hltnode.daemon.common.log import get_logger
from hltnode.daemon.common.rate_limit import RateLimit
from hltnode.daemon.event_building.event_builder import NEVER_NS, SOON_NS, EventBuilder
from hltnode.daemon.event_building.run_summary import RunSummary
from hltnode.daemon.event_building.stimuli_and_effects import (
    Abandon,
    AwaitedFeeder,
    AwaitFeeders,
    Batch,
    CloseOpen,
    Drain,
    Effect,
    EndRun,
    MepsAcknowledged,
    Resume,
    ReturnMeps,
    RevokeMeps,
    SetTimes,
    SlotAdvanced,
    SlotFreed,
    Tick,
)
from hltnode.daemon.monitoring.counters import Counters
from hltnode.daemon.output.requests import RevokeEvents
from hltnode.daemon.readout.acknowledgements import Acknowledgements, Ranges
from hltnode.daemon.readout.effect_executor import FeederConnections
from hltnode.daemon.readout.feeder_registry import FeederRegistry
from hltnode.daemon.readout.run_feeders import Feeder, HelloRefusedError, RunFeeders
from hltnode.daemon.readout.run_keeper import RunKeeper
from hltnode.protocol.transport.control_messages import ControlMessage
from hltnode.protocol.transport.feeder_messages import (
    Credit,
    EndOfRun,
    Error,
    Goodbye,
    Hello,
    Returned,
    Revoked,
    RunClosed,
    Welcome,
    split_ack,
    split_held,
    split_missed,
)
from hltnode.protocol.transport.mep_ranges import MepRanges, as_ranges
from hltnode.protocol.transport.messages import as_remark
from hltnode.protocol.transport.refusals import HelloRefusal, MessageRefusal
from hltnode.protocol.transport.run_control_messages import RunState

# Acknowledgements in the answer to one hello, of up to 1024 ranges each: what is left follows with the next hello,
# because `first_mep` has gone on by then.
MAX_ACKS_OF_A_HELLO = 64
# The same for MEPs that were closed without the feeder, which need one message as long as the same source is missing.
MAX_MISSED_OF_A_HELLO = 64
# The same for MEPs that the node holds.
MAX_HELD_OF_A_HELLO = 64
# Feeders are told of MEPs that were opened this long ago: at an ordinary rate they are acknowledged before, and there
# is nothing to say. Well below the time after which a feeder takes something as lost of which it hears nothing.
HELD_AFTER_NS = 500_000_000
# Runs and feeders that a status page shows.
SHOWN_RUNS = 32
SHOWN_FEEDERS = 64
LOG_INTERVAL_NS = 10_000_000_000
# Ranges of MEPs in one log line.
LOGGED_RANGES = 32

log = get_logger("feeder_protocol")


class FeederProtocol:
    """What the node answers to feeders.

    Args:
        carry_out: carries out effects of the builder.
        node_state: state of the run control; feeders are taken while it is running or paused.
        finish_run: called with the summary of a run when it is over (True), or when it is left and kept (False).
        revoke_events: hands the MEPs that went to another node to the outputs.
        confirm: called with a run and an id when every feeder has confirmed every MEP below it: nothing below it can be
            revoked any more.
        supervise: called with a run before its first feeder that may revoke MEPs is welcomed.
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
        confirm: Callable[[int, int], None],
        supervise: Callable[[int], None],
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
        self._revoke_events = revoke_events
        self._supervise = supervise
        self._runs = RunKeeper(
            builder,
            registry,
            acknowledgements,
            connections,
            counters,
            RunSummary(counters, builder, node=node, session=session, chain=registry.chain),
            carry_out,
            finish_run,
            confirm,
            clock_ns,
        )
        self._node = node
        self._session = session
        self._configured_run = registry.configured_run
        self._max_fragment_bytes = max_fragment_bytes
        self._clock_ns = clock_ns
        self._limit = RateLimit(LOG_INTERVAL_NS, clock_ns)
        self._revoking = 0
        self._awaited: tuple[int, tuple[AwaitedFeeder, ...]] = (0, ())
        self._silent_from_ns = 0
        """When the next feeder is silent if no message comes."""

    def remember(self, done: Mapping[int, Ranges], of_other_tck: Mapping[int, int]) -> None:
        """What earlier sessions of the node have finished, as (first, last) ranges of each run; before any message.

        of_other_tck: the runs among them that another trigger configuration decides on, with its key.
        """
        self._runs.remember(done, of_other_tck)

    # Control messages

    def message_arrived(self, identity: bytes, message: ControlMessage) -> None:
        """Take one message of a feeder."""
        now_ns = self._clock_ns()
        # Which feeders are there, or whether the run goes on, may change with it.
        self._silent_from_ns = 0
        self.builder.wake_by(now_ns + SOON_NS)
        known = self.registry.message_came(now_ns, identity)
        if isinstance(message, Hello):
            self._hello(now_ns, identity, message)
        elif known is None:
            self._refuse(identity, MessageRefusal.UNKNOWN_FEEDER, "say hello first")
        elif isinstance(message, EndOfRun) and message.run == known[0].run:
            if known[0].end_of_run(known[1], message):
                self._log_feeder("feeder_ended_run", known[1], last_mep=message.last_mep)
        elif isinstance(message, Revoked | Returned):
            self._moved(identity, *known, message)
        elif isinstance(message, Goodbye):
            known[1].gone = True
            self._log_feeder("feeder_left", known[1], reason=message.reason)
        else:
            text = f"{type(message).__name__} is not for the node now"
            self._refuse(identity, MessageRefusal.UNEXPECTED, text)

    def _refuse(self, identity: bytes, reason: MessageRefusal, text: str) -> None:
        self._counters.control_messages_rejected += 1
        self._counters.messages_refused[reason] += 1
        self._connections.send((identity,), Error(reason, as_remark(text)))

    def _log_feeder(self, event: str, feeder: Feeder, **details: object) -> None:
        """One line per feeder and ten seconds: a feeder may repeat what it says as often as it likes."""
        name = feeder.hello.feeder
        if (left_out := self._limit.due((event, name, feeder.hello.run))) is not None:
            log.info(event, feeder=name, run=feeder.hello.run, left_out=left_out, **details)

    def _hello(self, now_ns: int, identity: bytes, hello: Hello) -> None:
        state = self._node_state()
        if self._runs.is_closed(hello.run):
            self._connections.send((identity,), RunClosed(hello.run))
            return
        try:
            self.registry.check(hello)
            run = None
            if state in (RunState.RUNNING, RunState.PAUSED):
                run = self._runs.place(now_ns, hello, begins=state is RunState.RUNNING)
            if run is None:
                # No error: the feeder repeats its hello until the node is started.
                self._connections.send((identity,), Goodbye(f"node is {state}"))
                return
            self._refuse_double(now_ns, run, hello)
            feeder = self.registry.hello(now_ns, identity, run, hello, self._acknowledgements.done(hello.run))
            if hello.supervises and not run.supervised:
                run.supervised = True
                self._supervise(run.run)
            self._runs.follow(now_ns, run, starts=state is RunState.RUNNING)
        except HelloRefusedError as error:
            self._refuse_hello(identity, hello, error)
            return
        # Before the acknowledgements: with them the feeder forgets its fragments.
        missed = (split_missed(run.run, source, meps.ranges()) for source, meps in feeder.missed.items())
        for message in islice(chain.from_iterable(missed), MAX_MISSED_OF_A_HELLO):
            self._connections.send((identity,), message)
        # Before the welcome: a feeder that is welcomed knows what is acknowledged.
        acks = split_ack(run.run, self._acknowledgements.ranges(run.run, hello.first_mep))
        for ack in islice(acks, MAX_ACKS_OF_A_HELLO):
            self._connections.send((identity,), ack)
        welcome = self._welcome(run)
        if run.started:
            held = self.builder.held(hello.sources, now_ns - HELD_AFTER_NS)
            for of_held in islice(split_held(welcome.session, run.run, held), MAX_HELD_OF_A_HELLO):
                self._connections.send((identity,), of_held)
        self._connections.send((identity,), welcome)
        if run.started and self._runs.closing is None:
            self._connections.send((identity,), Credit(run.run, self.builder.window.limit))

    def _refuse_hello(self, identity: bytes, hello: Hello, error: HelloRefusedError) -> None:
        self._counters.control_messages_rejected += 1
        self._counters.hellos_refused[error.reason] += 1
        if self._limit.due(("hello", error.reason)) is not None:
            log.warning("hello_refused", feeder=hello.feeder, reason=error.reason, text=str(error))
        self._connections.send((identity,), Error(error.reason, as_remark(str(error))))

    def _welcome(self, run: RunFeeders) -> Welcome:
        # Feeders send what they kept only to a session that they do not know.
        session = f"{self._session}.{run.epoch}" if run.epoch else self._session
        return Welcome(self._node, session, run.run, self._max_fragment_bytes)

    def _refuse_double(self, now_ns: int, run: RunFeeders, hello: Hello) -> None:
        """A process that was restarted takes its place, one that is started a second time does not.

        They differ in the connection of the first one, which ends with its process. The welcome that probes for it
        contains nothing new for a feeder of this run.
        """
        rival = run.rival(now_ns, hello)
        if rival is not None and self._connections.reaches(rival.identity, self._welcome(run)):
            raise HelloRefusedError(
                HelloRefusal.NAME_TAKEN,
                # Not its session: with that, the receiver of this answer could send a hello in its place.
                f"another process feeds as {hello.feeder}, "
                f"its last message came {(now_ns - rival.last_message_ns) / 1e9:.1f} s ago",
            )

    def _moved(self, identity: bytes, run: RunFeeders, feeder: Feeder, message: Revoked | Returned) -> None:
        """MEPs went to another node, or have come back."""
        forbidden = self._why_forbidden(run, feeder, message)
        if forbidden is not None:
            if (left_out := self._limit.due("forbidden")) is not None:
                log.warning(
                    "revocation_refused", feeder=feeder.hello.feeder, run=run.run, reason=forbidden, left_out=left_out
                )
            self._refuse(identity, MessageRefusal.NOT_PERMITTED, forbidden)
        elif isinstance(message, Revoked):
            self._revoke(identity, run, message)
        else:
            self._take_back(run, message)
            self._connections.send((identity,), message)

    def _take_back(self, run: RunFeeders, message: Returned) -> None:
        for first, last in message.meps:
            run.revoked.discard(first, last)
        if run.started:
            self._carry_out(self.builder.handle(self._clock_ns(), ReturnMeps(message.meps)))

    def _revoke(self, identity: bytes, run: RunFeeders, message: Revoked) -> None:
        """Drop MEPs that went to another node while this one was lost: none of their events may stay here."""
        # Only what the node has of them costs anything.
        asked = MepRanges(message.meps)
        is_current = run.started
        before = run.revoked.count
        for first, last in message.meps:
            run.revoked.add(first, last)
        is_news = run.revoked.count > before
        in_node = {mep for mep in self.builder.unacknowledged_meps() if is_current and mep in asked}
        is_open = {mep for mep in self.builder.open if is_current and mep in asked}
        done = self._acknowledgements.done(run.run)
        written = MepRanges(common for span in message.meps for common in done.overlap(*span))
        for mep in in_node:
            written.add(mep)
        if is_current and (is_news or written or is_open):
            self._carry_out(self.builder.handle(self._clock_ns(), RevokeMeps(message.meps)))
        revoked = MepRanges(written.ranges())
        for mep in is_open:
            revoked.add(mep)
        if revoked:
            log.warning("meps_revoked", run=run.run, n=revoked.count, meps=revoked.ranges()[:LOGGED_RANGES])
            self._acknowledgements.revoke(run.run, written.ranges(), in_node)
        if not written and not self._revoking:
            self._connections.send((identity,), message)
            return
        # Behind the revocations that are being carried out: this one may repeat one of them.
        self._revoking += 1
        self._revoke_events(RevokeEvents(run.run, tuple(written.ranges()), frozenset(in_node), (identity, message)))

    def _why_forbidden(self, run: RunFeeders, feeder: Feeder, message: Revoked | Returned) -> str | None:
        if not feeder.hello.supervises:
            return f"feeder {feeder.hello.feeder} does not supervise"
        if message.run != run.run:
            return f"MEPs of run {message.run}: this connection feeds run {run.run}"
        below = max(run.floor, feeder.hello.first_mep)
        for first, last in message.meps:
            if first < below:
                return f"MEP {first}: every MEP below {below} is confirmed"
            if feeder.done_before.overlap(first, last):
                return f"MEPs {first} to {last}: some were acknowledged to an earlier session"
        # More than the ids that are taken cannot be with another node.
        asked = sum(last - first + 1 for first, last in message.meps)
        known = sum(end - begin + 1 for span in message.meps for begin, end in run.revoked.overlap(*span))
        if isinstance(message, Revoked) and run.revoked.count + asked - known > self.builder.span:
            return f"{asked} MEPs: {run.revoked.count} are revoked, at most {self.builder.span} can be"
        return None

    def events_revoked(self, receipt: tuple[bytes, Revoked]) -> None:
        """The files hold nothing of revoked MEPs any more: confirm it to the feeder that asked for it."""
        identity, message = receipt
        self._revoking -= 1
        self._connections.send((identity,), message)

    # The pipeline and time

    def slot_advanced(self, advanced: SlotAdvanced) -> None:
        """The pipeline is further with a slot."""
        self._carry_out(self.builder.handle(self._clock_ns(), advanced))

    def slot_freed(self, batch: Batch) -> None:
        """What is kept of a batch is gathered."""
        self._carry_out(self.builder.handle(self._clock_ns(), SlotFreed(batch.slot)))

    def batch_done(self, batch: Batch) -> None:
        """Decisions are out and events are safe: acknowledge."""
        built = [mep.mep for mep in batch.meps]
        meps = self._acknowledgements.finish(batch.run, built)
        self._counters.meps_acknowledged += len(meps)
        # The credits go first: an acknowledgement takes its MEP from what a feeder counts against them.
        self._carry_out(self.builder.handle(self._clock_ns(), MepsAcknowledged(tuple(built))))
        for ack in split_ack(batch.run, as_ranges(meps)):
            self._connections.send(self.registry.identities(batch.run), ack)

    def tick(self, now_ns: int) -> None:
        """Check deadlines, feeders and the end of the run; to be called when the sockets have been read."""
        current = self.registry.current
        if now_ns >= self._silent_from_ns or self.builder.starts != self._awaited[0]:
            self._silent_from_ns = NEVER_NS if current is None else current.silent_from_ns(now_ns)
            if current is not None and current.started:
                # A run that starts knows of none.
                awaited = self.builder.starts, current.awaited(now_ns)
                if awaited != self._awaited:
                    self._awaited = awaited
                    self.builder.handle(now_ns, AwaitFeeders(awaited[1]))
        self._carry_out(self.builder.handle(now_ns, Tick()))
        self._runs.tick(now_ns)
        self.builder.wake_by(self._silent_from_ns)

    # Run control

    def open_runs(self, run: int | None) -> int:
        """Take feeders from now on: of this run, or as configured. Returns the run, 0 for that of the first feeder."""
        taken = self._configured_run if run is None else run
        self._runs.reopen(taken)
        self.registry.configured_run = taken
        return taken

    def close(self, run: int | None) -> str:
        """An operator closes a run, see `RunKeeper.close`. Raises RunNotClosedError."""
        return self._runs.close(run)

    @property
    def closing(self) -> int | None:
        """The run that is being closed: its last MEPs are computed."""
        return self._runs.closing

    def pause(self) -> None:
        """Grant no more until `resume`; what was granted may still come."""
        self._carry_out(self.builder.handle(self._clock_ns(), Drain()))

    def resume(self) -> None:
        """Grant again."""
        self._carry_out(self.builder.handle(self._clock_ns(), Resume()))

    def set_times(self, mep_timeout_ms: int, flush_deadline_us: int) -> None:
        """Other deadlines from now on."""
        times = SetTimes(mep_timeout_ms * 1_000_000, flush_deadline_us * 1_000)
        self._carry_out(self.builder.handle(self._clock_ns(), times))

    def leave_run(self) -> None:
        """The drain is over: leave the run, if there is one; its feeders wait for the next session."""
        self.say_goodbye()
        self._runs.leave()

    def abandon(self) -> None:
        """Drop MEPs that are open, and do not wait for what is in the pipeline."""
        self._carry_out(self.builder.handle(self._clock_ns(), EndRun()))
        self._carry_out(self.builder.handle(self._clock_ns(), Abandon()))
        unacknowledged = len(self.builder.unacknowledged_meps())
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
        current = self.registry.current
        if current is not None:
            self._connections.send(current.identities(), Goodbye("session ends"))

    # Status

    def check_accounts(self) -> bool:
        """Log the accounts; critical, counted and False if a fragment or MEP is in no class."""
        return self._runs.check_accounts()

    def feeders(self, now_ns: int) -> list[dict[str, object]]:
        """The feeders of the current run for /status."""
        current = self.registry.current
        return [] if current is None else [feeder.describe(now_ns) for feeder in current.feeders()]

    def kept_runs(self, now_ns: int) -> list[dict[str, object]]:
        """The runs that are not over beside the current one, why, and their feeders, for /status."""
        return [
            {
                "run": run.run,
                "reason": run.reason_to_keep(now_ns),
                "feeders": [feeder.describe(now_ns) for feeder in run.feeders()[:SHOWN_FEEDERS]],
            }
            for run in islice(self.registry.kept.values(), SHOWN_RUNS)
        ]
