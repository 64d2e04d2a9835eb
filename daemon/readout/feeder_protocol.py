"""The conversation with the feeders: hellos, credits, acknowledgements, revocations.

It has no sockets and no clock of its own: messages arrive as calls, answers leave through `FeederConnections`. The
`BuilderControl` applies their changes, and the `RunKeeper` decides which run is accepted. All calls come from the event
loop.
"""

from collections.abc import Callable
from itertools import chain, islice

from hltnode.daemon.common.log import get_logger
from hltnode.daemon.common.rate_limit import RateLimit
from hltnode.daemon.event_building.stimuli_and_effects import ReturnMeps, RevokeMeps
from hltnode.daemon.monitoring.counters import Counters
from hltnode.daemon.output.requests import RevokeEvents
from hltnode.daemon.readout.builder_control import BuilderControl
from hltnode.daemon.readout.effect_executor import FeederConnections
from hltnode.daemon.readout.run_feeders import Feeder, HelloRefusedError, RunFeeders
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
from hltnode.protocol.transport.mep_ranges import MepRanges
from hltnode.protocol.transport.messages import as_remark
from hltnode.protocol.transport.refusals import HelloRefusal, MessageRefusal
from hltnode.protocol.transport.run_control_messages import RunState

# Most acknowledgements in the answer to one hello, with up to 1024 ranges each. The rest follows after the next hello,
# whose `first_mep` is higher.
MAX_ACKS_OF_A_HELLO = 64
# The same for MEPs closed without fragments of the feeder. They need one message for each missing source.
MAX_MISSED_OF_A_HELLO = 64
# The same for MEPs that the node holds.
MAX_HELD_OF_A_HELLO = 64
# Feeders are told which MEPs the node holds after this time from opening. At ordinary rates MEPs are acknowledged
# earlier, and no message is necessary. A feeder assumes a loss much later than this.
HELD_AFTER_NS = 500_000_000
LOG_INTERVAL_NS = 10_000_000_000
# Most ranges of MEPs in one log line.
LOGGED_RANGES = 32

log = get_logger("feeder_protocol")


class FeederProtocol:
    """Answers the messages of feeders.

    Args:
        control: the builder, its runs and its feeders.
        node_state: state of the run control. Feeders are accepted while it is running or paused.
        revoke_events: tells the outputs which MEPs another node gets.
        supervise: called with a run before the welcome of its first feeder that may revoke MEPs.
        input_known: called with a started run and its input before the welcome of the feeder that names it.
    """

    def __init__(
        self,
        control: BuilderControl,
        connections: FeederConnections,
        counters: Counters,
        node_state: Callable[[], RunState],
        revoke_events: Callable[[RevokeEvents], None],
        supervise: Callable[[int], None],
        input_known: Callable[[int, str], None],
        *,
        node: str,
        session: str,
        max_fragment_bytes: int,
        clock_ns: Callable[[], int],
    ) -> None:
        self._control = control
        self._builder = control.builder
        self._registry = control.registry
        self._acknowledgements = control.acknowledgements
        self._runs = control.runs
        self._connections = connections
        self._counters = counters
        self._node_state = node_state
        self._revoke_events = revoke_events
        self._supervise = supervise
        self._input_known = input_known
        self._node = node
        self._session = session
        self._max_fragment_bytes = max_fragment_bytes
        self._clock_ns = clock_ns
        self._limit = RateLimit(LOG_INTERVAL_NS, clock_ns)
        self._revoking = 0
        self.only_session: str | None = None
        """The session of the only feeder that is taken, in a shadow node; None: any feeder."""

    def message_arrived(self, identity: bytes, message: ControlMessage) -> None:
        """Handle one message of a feeder."""
        now_ns = self._clock_ns()
        self._control.feeder_spoke(now_ns)
        known = self._registry.message_came(now_ns, identity)
        if isinstance(message, Hello):
            self._hello(now_ns, identity, message)
        elif known is None:
            self._refuse(identity, MessageRefusal.UNKNOWN_FEEDER, "expected a hello first")
        elif isinstance(message, EndOfRun) and message.run == known[0].run:
            if known[0].end_of_run(known[1], message):
                self._log_feeder("feeder_ended_run", known[1], last_mep=message.last_mep)
        elif isinstance(message, Revoked | Returned):
            self._moved(identity, *known, message)
        elif isinstance(message, Goodbye):
            self._registry.left(known[1])
            self._log_feeder("feeder_left", known[1], reason=message.reason)
        else:
            text = f"the node does not expect {type(message).__name__} now"
            self._refuse(identity, MessageRefusal.UNEXPECTED, text)

    def _refuse(self, identity: bytes, reason: MessageRefusal, text: str) -> None:
        self._counters.control_messages_rejected += 1
        self._counters.messages_refused[reason] += 1
        self._connections.send((identity,), Error(reason, as_remark(text)))

    def _log_feeder(self, event: str, feeder: Feeder, **details: object) -> None:
        """Log at most one line for each feeder and event in ten seconds: a feeder may repeat a message at any rate."""
        name = feeder.hello.feeder
        if (left_out := self._limit.due((event, name, feeder.hello.run))) is not None:
            log.info(event, feeder=name, run=feeder.hello.run, left_out=left_out, **details)

    def _hello(self, now_ns: int, identity: bytes, hello: Hello) -> None:
        state = self._node_state()
        if self._runs.is_closed(hello.run):
            self._connections.send((identity,), RunClosed(hello.run))
            return
        try:
            if self.only_session is not None and hello.session != self.only_session:
                text = f"node {self._node} is a shadow of another node and takes no feeders"
                raise HelloRefusedError(HelloRefusal.SHADOW, text)
            self._registry.check(hello)
            run = None
            if state in (RunState.RUNNING, RunState.PAUSED):
                run = self._runs.place(now_ns, hello, begins=state is RunState.RUNNING)
            if run is None:
                # Not an error: the feeder repeats its hello until the node is started.
                self._connections.send((identity,), Goodbye(f"node is {state}"))
                return
            done = self._acknowledgements.done(hello.run)
            is_idle = self._builder.is_idle or run is not self._registry.current
            run.take_input(hello, has_data=bool(done) or not is_idle or not run.is_deserted(now_ns))
            self._refuse_double(now_ns, run, hello)
            feeder = self._registry.hello(now_ns, identity, run, hello, done)
            if hello.supervises and not run.supervised:
                run.supervised = True
                self._supervise(run.run)
            self._runs.follow(now_ns, run, starts=state is RunState.RUNNING)
            if run.started and run.input and not run.input_kept:
                # Before the first batch, whose record keeps it.
                run.input_kept = True
                self._input_known(run.run, run.input)
        except HelloRefusedError as error:
            self._refuse_hello(identity, hello, error)
            return
        # The connection of an old hello may have ended already: what is left waits for the next one.
        while feeder.unsent and self._connections.delivers(identity, feeder.unsent[0]):
            feeder.unsent.popleft()
        # Sent before the acknowledgements, after which the feeder forgets its fragments.
        missed = (split_missed(run.run, source, meps.ranges()) for source, meps in feeder.missed.items())
        for message in islice(chain.from_iterable(missed), MAX_MISSED_OF_A_HELLO):
            self._connections.send((identity,), message)
        # Sent before the welcome: a welcomed feeder knows which MEPs are acknowledged.
        acks = split_ack(run.run, self._acknowledgements.ranges(run.run, hello.first_mep))
        for ack in islice(acks, MAX_ACKS_OF_A_HELLO):
            self._connections.send((identity,), ack)
        welcome = self._welcome(run, feeder)
        if run.started:
            held = self._builder.held(hello.sources, now_ns - HELD_AFTER_NS)
            for of_held in islice(split_held(welcome.session, run.run, held), MAX_HELD_OF_A_HELLO):
                self._connections.send((identity,), of_held)
        self._connections.send((identity,), welcome)
        if run.started and self._runs.closing is None:
            self._connections.send((identity,), Credit(run.run, self._builder.window.limit))

    def _refuse_hello(self, identity: bytes, hello: Hello, error: HelloRefusedError) -> None:
        self._counters.control_messages_rejected += 1
        self._counters.hellos_refused[error.reason] += 1
        if self._limit.due(("hello", error.reason)) is not None:
            log.warning("hello_refused", feeder=hello.feeder, reason=error.reason, text=str(error))
        self._connections.send((identity,), Error(error.reason, as_remark(str(error))))

    def _welcome(self, run: RunFeeders, feeder: Feeder) -> Welcome:
        # Feeders send their kept MEPs again only to a session that they do not know.
        session = f"{self._session}.{run.epoch}" if run.epoch else self._session
        return Welcome(self._node, session, run.run, self._max_fragment_bytes, feeder.token)

    def _refuse_double(self, now_ns: int, run: RunFeeders, hello: Hello) -> None:
        """Refuse a second process under the name of a running feeder. A restarted process is accepted.

        After a restart the connection of the first process has ended. A welcome probes that connection: it tells a
        feeder of this run nothing new. A flood of hellos makes few probes: thousands of welcomes would fill the queue
        of the running feeder, and its credits would be lost. Raises HelloRefusedError.
        """
        rival = run.rival(now_ns, hello)
        if rival is None:
            return
        if not rival.is_reached(now_ns):
            if not self._connections.reaches(rival.identity, self._welcome(run, rival)):
                return
            rival.reached_ns = now_ns
        raise HelloRefusedError(
            HelloRefusal.NAME_TAKEN,
            # Without its session id: with it, the receiver of this answer could send hellos in its name.
            f"another process feeds as {hello.feeder}, "
            f"its last message came {(now_ns - rival.last_message_ns) / 1e9:.1f} s ago",
        )

    def _moved(self, identity: bytes, run: RunFeeders, feeder: Feeder, message: Revoked | Returned) -> None:
        """Handle MEPs that went to another node (Revoked) or came back (Returned)."""
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
            self._control.handle(ReturnMeps(message.meps))

    def _revoke(self, identity: bytes, run: RunFeeders, message: Revoked) -> None:
        """Drop MEPs that another node gets: none of their events may stay here."""
        # Work is done only for those MEPs that the node has.
        asked = MepRanges(message.meps)
        is_current = run.started
        before = run.revoked.count
        for first, last in message.meps:
            run.revoked.add(first, last)
        is_news = run.revoked.count > before
        in_node = {mep for mep in self._builder.unacknowledged_meps() if is_current and mep in asked}
        is_open = {mep for mep in self._builder.open if is_current and mep in asked}
        done = self._acknowledgements.done(run.run)
        written = MepRanges(common for span in message.meps for common in done.overlap(*span))
        for mep in in_node:
            written.add(mep)
        if is_current and (is_news or written or is_open):
            self._control.handle(RevokeMeps(message.meps))
        revoked = MepRanges(written.ranges())
        for mep in is_open:
            revoked.add(mep)
        if revoked:
            log.warning("meps_revoked", run=run.run, n=revoked.count, meps=revoked.ranges()[:LOGGED_RANGES])
            self._acknowledgements.revoke(run.run, written.ranges(), in_node)
        if not written and not self._revoking:
            self._connections.send((identity,), message)
            return
        # Queued behind the revocations in progress: this one may repeat one of them.
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
        # Another node cannot have more MEPs than this node accepts ids.
        asked = sum(last - first + 1 for first, last in message.meps)
        known = sum(end - begin + 1 for span in message.meps for begin, end in run.revoked.overlap(*span))
        if isinstance(message, Revoked) and run.revoked.count + asked - known > self._builder.span:
            return f"{asked} MEPs: {run.revoked.count} are revoked, at most {self._builder.span} can be"
        return None

    def events_revoked(self, receipt: tuple[bytes, Revoked]) -> None:
        """Confirm to the feeder that the files hold no events of its revoked MEPs."""
        identity, message = receipt
        self._revoking -= 1
        self._connections.send((identity,), message)
