"""The feeder inside the node that stands for all UDP senders (no I/O, no clock).

UDP has no answers: senders know no hello, credit or acknowledgement. But the rules of runs, tokens, credits and
acknowledged MEPs are those of feeders. So the node has a feeder of its own, which speaks to `FeederProtocol` as any
other, in calls instead of messages on the wire.
"""

from collections.abc import Callable, Iterable

from hltnode.daemon.common.log import get_logger
from hltnode.daemon.readout.effect_executor import FeederConnections
from hltnode.protocol.transport.control_messages import ControlMessage
from hltnode.protocol.transport.feeder_messages import Ack, Credit, EndOfRun, Error, Goodbye, Hello, RunClosed, Welcome

IDENTITY = b"udp intake".ljust(256)
"""Identity of the feeder among the connections of the control socket. A peer cannot take it: those of ZMTP have at most
255 bytes."""
NAME = "udp"
HELLO_NS = 1_000_000_000
"""Period of the hellos, which confirm acknowledged MEPs."""

log = get_logger("udp")


class ConnectionsWithUdp:
    """The connections of the control socket, and the feeder inside the node.

    Args:
        connections: the control socket.
        deliver: gets the messages to the feeder inside the node.
    """

    def __init__(self, connections: FeederConnections, deliver: Callable[[ControlMessage], None]) -> None:
        self._connections = connections
        self._deliver = deliver

    def send(self, identities: Iterable[bytes], message: ControlMessage, /) -> None:
        """Send to each connected peer that reads."""
        receivers = list(identities)
        others = [identity for identity in receivers if identity != IDENTITY]
        if len(others) < len(receivers):
            self._deliver(message)
        if others:
            self._connections.send(others, message)

    def reaches(self, identity: bytes, message: ControlMessage, /) -> bool:
        """Send to one peer; False if it is not connected."""
        return identity == IDENTITY or self._connections.reaches(identity, message)

    def delivers(self, identity: bytes, message: ControlMessage, /) -> bool:
        """Send to one peer; False if the message was dropped."""
        if identity == IDENTITY:
            self._deliver(message)
            return True
        return self._connections.delivers(identity, message)


class LocalFeeder:
    """The conversation of the UDP intake with the node.

    Args:
        say: handles a message of the feeder (`FeederProtocol.message_arrived`).
        sources: the sources of all senders.
        credits_grew: called when more MEPs may be handed over.
    """

    def __init__(
        self,
        say: Callable[[bytes, ControlMessage], None],
        *,
        session: str,
        chain: str,
        sources: tuple[int, ...],
        events_per_mep: int,
        max_fragment_bytes: int,
        credits_grew: Callable[[], None],
    ) -> None:
        self._say = say
        self._session = session
        self._chain = chain
        self._sources = sources
        self._events_per_mep = events_per_mep
        self._max_fragment_bytes = max_fragment_bytes
        self._credits_grew = credits_grew
        self._welcome: Welcome | None = None
        self._next_hello_ns = 0
        self.refusal = ""
        """Why the node has not accepted the last hello; empty: it has."""

    def message(self, message: ControlMessage) -> None:
        """Handle a message of the node."""
        if isinstance(message, Welcome):
            self._welcome = message
            self.refusal = ""
        elif isinstance(message, Error):
            self._refused(message.text)
        elif isinstance(message, Goodbye):
            self._refused(message.reason)
        elif isinstance(message, RunClosed):
            self._refused(f"run {message.run} is closed")
        elif isinstance(message, Credit | Ack):
            # An acknowledgement gives credits back that no message of their own announces.
            self._credits_grew()

    def _refused(self, text: str) -> None:
        self._welcome = None
        self.refusal = text

    @property
    def run(self) -> int | None:
        """The run in which the feeder is welcome."""
        return None if self._welcome is None else self._welcome.run

    @property
    def token(self) -> int:
        """Its permission to send in this run."""
        return 0 if self._welcome is None else self._welcome.token

    def join(self, now_ns: int, run: int, first_mep: int) -> bool:
        """Say hello for a run; False if the node refuses it. MEPs below `first_mep` are finished or lost."""
        self._welcome = None
        self._next_hello_ns = now_ns + HELLO_NS
        self._say(IDENTITY, self._hello(run, first_mep))
        return self.run == run

    def is_hello_due(self, now_ns: int) -> bool:
        """Whether a second has passed since the last hello."""
        return self._welcome is not None and now_ns >= self._next_hello_ns

    def confirm(self, now_ns: int, below: int) -> None:
        """Confirm the MEPs below an id as acknowledged."""
        if self._welcome is not None:
            self._next_hello_ns = now_ns + HELLO_NS
            self._say(IDENTITY, self._hello(self._welcome.run, below))

    def end(self, now_ns: int, next_mep: int) -> None:
        """End the run: all MEPs below `next_mep` are acknowledged."""
        run = self.run
        if run is None:
            return
        self._say(IDENTITY, EndOfRun(run, next_mep - 1 if next_mep else None))
        self.confirm(now_ns, next_mep)
        self._say(IDENTITY, Goodbye("end of run"))
        self._welcome = None
        log.info("udp_run_ended", run=run, meps=next_mep)

    def _hello(self, run: int, first_mep: int) -> Hello:
        return Hello(
            feeder=NAME,
            session=self._session,
            run=run,
            sources=self._sources,
            first_mep=first_mep,
            events_per_mep=self._events_per_mep,
            max_fragment_bytes=self._max_fragment_bytes,
            supervises=False,
            chain=self._chain,
        )
