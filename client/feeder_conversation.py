"""The conversation of a feeder with its node: it makes hellos and handles answers (no I/O).

After a lost connection or in a new session of the node, all unacknowledged MEPs are sent again. The node knows which of
them it already has.
"""

import secrets
from collections.abc import Callable
from dataclasses import dataclass
from typing import Protocol

from hltnode.client.clock import Clock
from hltnode.client.hello_refusals import PATIENCE_NS, HelloRefusals
from hltnode.client.send_window import SendWindow
from hltnode.protocol.errors import RejectReason
from hltnode.protocol.transport.control_messages import ControlMessage
from hltnode.protocol.transport.feeder_messages import (
    Ack,
    Credit,
    Error,
    Goodbye,
    Held,
    Hello,
    Missed,
    Nack,
    Returned,
    Revoked,
    RunClosed,
    Welcome,
)
from hltnode.protocol.transport.frame_header import HEADER_SIZE
from hltnode.protocol.transport.refusals import HelloRefusal, MessageRefusal


class Report(Protocol):
    """Logs the events between a feeder and its node; `reason` is one of a few fixed words."""

    def __call__(self, event: str, /, **details: object) -> None: ...


def report_nothing(_event: str, /, **_details: object) -> None:
    """The default report: logs nothing."""


class FeederRefusedError(RuntimeError):
    """The node refuses this feeder; the message comes from the node."""


@dataclass(frozen=True, slots=True, kw_only=True)
class FeederIdentity:
    """The content of a feeder's hello."""

    name: str
    run: int
    sources: tuple[int, ...]
    events_per_mep: int
    max_fragment_bytes: int
    feeders: int = 1
    """Number of feeders that share the sources of the run, this one included; the run starts when all are connected."""
    chain: str = ""
    """The chain of the data: a node of another chain refuses them. Empty: a node of any chain accepts them."""
    input: str = ""
    """Identifies an input that can be sent again: a node refuses another one for an unfinished run. Empty: unknown."""
    follows_run: bool = False
    """True if this process has fed another run before: it waits as long as the node has another active run."""


class FeederConversation:
    """The feeder's side of the control connection, and its window of MEPs.

    Args:
        report: called with each event between feeder and node.
    """

    def __init__(self, identity: FeederIdentity, clock: Clock, report: Report) -> None:
        self.identity = identity
        self.window = SendWindow()
        self.session = secrets.token_hex(8)
        self.node_session: str | None = None
        self.token = 0
        """Permission of the node to send: every frame carries it."""
        self._max_frame_bytes = identity.max_fragment_bytes + HEADER_SIZE
        # Connected: between a welcome and the loss of the connection. Then the time of the loss (ns of the clock).
        self.is_connected = False
        self.lost_since_ns: int | None = None
        # Whether this connection tells the node which MEPs went to another node, and whether it does so now.
        self.supervising = False
        self.may_revoke = True
        self.floor: Callable[[], int] = lambda: self.window.first_unacknowledged
        self._restart_on_welcome = True
        self._refusals = HelloRefusals(follows_run=identity.follows_run)
        self._silent_hellos = 0
        self._hellos_without_welcome = 0
        self._welcomes = 0
        self._report = report
        self._clock = clock

    def hello(self) -> Hello:
        """The next hello: it confirms the acknowledged MEPs, and this node gets no further request to revoke them."""
        first_mep = self.floor()
        if self.supervising and self.window.to_revoke:
            first_mep = min(first_mep, self.window.to_revoke.ranges()[0][0])
        self.window.confirm_below(first_mep)
        identity = self.identity
        return Hello(
            feeder=identity.name,
            session=self.session,
            run=identity.run,
            sources=identity.sources,
            first_mep=first_mep,
            events_per_mep=identity.events_per_mep,
            max_fragment_bytes=identity.max_fragment_bytes,
            supervises=self.supervising,
            feeders=identity.feeders,
            chain=identity.chain,
            input=identity.input,
        )

    def take(self, message: ControlMessage) -> None:
        """Handle a message of the node. Raises FeederRefusedError."""
        self._silent_hellos = 0
        run = self.identity.run
        match message:
            case Welcome():
                self._welcome(message)
            case Credit(run=of_run):
                if of_run == run and not self._restart_on_welcome:
                    self.window.credit(message.meps)
            case Ack(run=of_run) if of_run == run:
                for first, last in message.meps:
                    self.window.acknowledge(first, last)
            case Held(run=of_run) if of_run == run:
                if message.session == self.node_session:
                    for first, last in message.meps:
                        self.window.hold(first, last)
            case Nack():
                self._nack(message)
            case Missed(run=of_run) if of_run == run:
                self._missed(message)
            case Revoked(run=of_run) if of_run == run:
                for first, last in message.meps:
                    self.window.confirm_revoked(first, last)
            case Returned(run=of_run) if of_run == run:
                for first, last in message.meps:
                    self.window.confirm_returned(first, last)
            case Goodbye():
                self._lose()
                self._report("node_leaves", reason=message.reason)
            case Error():
                self._error(message)
            case RunClosed(run=of_run) if of_run == run:
                raise FeederRefusedError(f"run {run} was closed by an operator")
            case _:
                self._report("unexpected_message", type=type(message).__name__)

    def _welcome(self, welcome: Welcome) -> None:
        self._refusals.welcomed()
        self._hellos_without_welcome = max(0, self._hellos_without_welcome - 1)
        self._welcomes += 1
        is_new = welcome.session != self.node_session or welcome.token != self.token
        if is_new or self._restart_on_welcome:
            self._report(
                "welcome", node=welcome.node, session=welcome.session, unacknowledged=self.window.unacknowledged
            )
            keeps_held = welcome.session == self.node_session
            self.node_session, self.token = welcome.session, welcome.token
            self._max_frame_bytes = welcome.max_fragment_bytes + HEADER_SIZE
            self._restart_on_welcome = False
            self.is_connected = True
            self.lost_since_ns = None
            self.window.restart(keeps_held=keeps_held)
        else:
            # The node reported earlier which MEPs it holds.
            self.window.queue_lost(self._clock.monotonic_ns())

    def _nack(self, nack: Nack) -> None:
        if nack.reason is RejectReason.FOREIGN_RUN:
            # The node switched to another run; its answers to the hellos decide the next step.
            self._lose()
        else:
            if self.supervising and nack.reason is RejectReason.REVOKED and nack.mep in self.window:
                # An earlier process assigned it to this node again, and ended before the node was told.
                self.window.to_return.add(nack.mep)
            self.window.refuse(self._clock.monotonic_ns(), nack)
        self._report("fragment_refused", reason=nack.reason, source=nack.source, mep=nack.mep, resend=nack.resend)

    def _missed(self, missed: Missed) -> None:
        for first, last in missed.meps:
            self.window.miss(missed.source, first, last)
        self._report("meps_closed_without_fragment", source=missed.source, meps=missed.meps)

    def _error(self, error: Error) -> None:
        if error.reason == MessageRefusal.UNKNOWN_FEEDER:
            return
        if error.reason == MessageRefusal.NOT_PERMITTED:
            self.window.revocation_refused()
        if error.reason == HelloRefusal.NAME_TAKEN:
            # Only one of two processes may send: this one was silent until another one took its place.
            self._lose()
        hopeless = self._refusals.refused(self._clock.monotonic_ns(), error.reason, error.text)
        if hopeless is not None:
            raise self._refused(hopeless)
        self._report("node_refuses", reason=error.reason, text=error.text, patience_s=PATIENCE_NS // 1_000_000_000)

    def _refused(self, text: str) -> FeederRefusedError:
        return FeederRefusedError(f"node refuses feeder {self.identity.name}: {text}")

    def _lose(self) -> None:
        self._restart_on_welcome = True
        self.window.stop()
        self.is_connected = False
        if self.lost_since_ns is None:
            self.lost_since_ns = self._clock.monotonic_ns()
