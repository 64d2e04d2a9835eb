"""The control socket (ROUTER): messages to and from feeders and operators. Malformed ones are counted and answered."""

import asyncio
import time
from collections.abc import Callable, Iterable, Sequence

import zmq

from hltnode.daemon.common.log import get_logger
from hltnode.daemon.common.peer import Peer
from hltnode.daemon.common.rate_limit import RateLimit
from hltnode.daemon.common.vocabulary import ConnectionRefusal
from hltnode.daemon.common.zmq_sockets import ACKNOWLEDGED_WITHIN_MS, MAX_CONTROL_BYTES, SocketDrain, bind_socket
from hltnode.daemon.monitoring.counters import Counters
from hltnode.daemon.readout.reading_clock import ReadingClock
from hltnode.daemon.security.message_budget import MessageBudget
from hltnode.daemon.security.message_parts import MessageParts
from hltnode.daemon.security.received_input import ReceivedInput, address_of, key_of
from hltnode.protocol.errors import MessageVersionError, ProtocolError
from hltnode.protocol.transport.control_messages import ControlMessage, decode_message, encode_error, encode_message
from hltnode.protocol.transport.feeder_messages import Error
from hltnode.protocol.transport.messages import as_remark
from hltnode.protocol.transport.refusals import MessageRefusal
from hltnode.protocol.transport.run_control_messages import Command, Reply

# Messages queued for one feeder. A feeder that leaves more unread gets the missed content with its next hello.
CONTROL_HWM = 1000
# Parts of messages read before the event loop gets its turn. A message of a stranger may cost 0.1 ms, and the fragments
# of the feeders must not wait for many of them.
BUDGET_PARTS = 64
# A valid message has two parts, identity and content.
PARTS = 2
# Error for a peer without the role of a feeder.
NOT_A_FEEDER = "not_a_feeder"
LOG_INTERVAL_NS = 10_000_000_000

log = get_logger("control_socket")


class ControlSocket:
    """The ROUTER socket.

    Args:
        prepare: applies keys and limits before the socket is bound.
        received: counts each message for its connection.

    Raises:
        BindError: the endpoint cannot be bound.
    """

    def __init__(
        self,
        context: zmq.Context[zmq.Socket[bytes]],
        endpoint: str,
        counters: Counters,
        reading_clock: ReadingClock,
        prepare: Callable[[zmq.Socket[bytes]], None],
        received: ReceivedInput,
    ) -> None:
        self._counters = counters
        self._received = received
        self._limit = RateLimit(LOG_INTERVAL_NS, time.monotonic_ns)
        self._reading_clock = reading_clock
        options = {
            zmq.SNDHWM: CONTROL_HWM,
            zmq.MAXMSGSIZE: MAX_CONTROL_BYTES,
            # Without it a message to a disconnected feeder would be dropped without an error.
            zmq.ROUTER_MANDATORY: 1,
            zmq.TCP_MAXRT: ACKNOWLEDGED_WITHIN_MS,
        }
        self._socket, self.endpoint = bind_socket(context, zmq.ROUTER, endpoint, options, prepare)
        self._drain: SocketDrain | None = None
        self._budget = MessageBudget()
        self._messages = MessageParts(received, PARTS)

    def start(
        self,
        loop: asyncio.AbstractEventLoop,
        handle: Callable[[bytes, ControlMessage], None],
        execute: Callable[[Peer, Command], Reply],
        may_feed: Callable[[Peer], bool],
        is_welcome: Callable[[bytes], bool],
    ) -> None:
        """Start to receive.

        Args:
            handle: called with each valid message of a feeder and the identity of the sender.
            execute: called with each command of an operator and its sender; returns the reply.
            may_feed: whether a peer is a feeder.
            is_welcome: whether the connection with this identity belongs to a feeder that has been welcomed.
        """
        self._handle = handle
        self._execute = execute
        self._may_feed = may_feed
        self._is_welcome = is_welcome
        self._drain = SocketDrain(loop, self._socket, self._read_until)
        self._drain.start()
        self._received.ask = self._drain.kick_from_thread

    def bind_also(self, endpoint: str) -> None:
        """Bind a further endpoint, for a feeder in this process (inproc)."""
        self._socket.bind(endpoint)

    def read(self) -> bool:
        """Read the socket; False if more messages wait than fit one turn of the event loop."""
        return self._drain is None or self._drain.read()

    def close(self, linger_ms: int) -> None:
        """Close the socket. Queued messages may be sent for up to `linger_ms` while the context ends."""
        if self._drain is not None:
            self._drain.stop()
        self._socket.close(linger=linger_ms)

    def send(self, identities: Iterable[bytes], message: ControlMessage) -> None:
        """Send to each connected peer that reads. The others get the missed content with their next hello."""
        raw = encode_message(message)
        for identity in identities:
            self._send(identity, raw)
        if self._drain is not None:
            self._drain.kick()

    def reaches(self, identity: bytes, message: ControlMessage) -> bool:
        """Send to one peer; False if it is not connected, for example because its process has ended.

        TCP notices a lost machine or network only after 5 to 10 s.
        """
        error = self._send(identity, encode_message(message))
        if self._drain is not None:
            self._drain.kick()
        return error != zmq.EHOSTUNREACH

    def delivers(self, identity: bytes, message: ControlMessage) -> bool:
        """Send to one peer; False if the message was dropped: the peer is not connected, or does not read."""
        error = self._send(identity, encode_message(message))
        if self._drain is not None:
            self._drain.kick()
        return not error

    def _send(self, identity: bytes, raw: bytes) -> int:
        """0, EHOSTUNREACH if no connection has this identity, or EAGAIN if its peer leaves too many messages unread."""
        try:
            self._socket.send_multipart((identity, raw), zmq.NOBLOCK)
        except zmq.ZMQError as error:
            if error.errno not in (zmq.EAGAIN, zmq.EHOSTUNREACH):
                raise
            self._counters.control_messages_unsent += 1
            return error.errno
        return 0

    def _read_until(self, end_ns: int) -> bool:
        self._reading_clock.read()
        for _ in range(BUDGET_PARTS):
            try:
                # Only frames have the properties of their sender; copied messages have none.
                part = self._socket.recv(zmq.NOBLOCK, copy=False)
            except zmq.Again:
                self._received.tally.empty()
                return True
            self._part_arrived(part)
            if time.monotonic_ns() >= end_ns:
                break
        return False

    def _part_arrived(self, part: zmq.Frame) -> None:
        message = self._messages.add(part)
        if message is not None and self._admits(message.parts[0].bytes, part, message.n_bytes):
            self._message_arrived(message.parts, message.n_parts)

    def _admits(self, identity: bytes, last: zmq.Frame, n_bytes: int) -> bool:
        """Whether the sender of a message has not sent too many. A refused message is dropped without an answer."""
        now_ns = self._reading_clock.true_ns
        if self._is_welcome(identity):
            admitted = self._budget.admits_feeder(identity, n_bytes, now_ns)
        else:
            admitted = self._budget.admits_stranger(address_of(last), n_bytes, now_ns)
        if admitted:
            return True
        self._counters.control_messages_rejected += 1
        self._counters.messages_refused[MessageRefusal.TOO_MANY] += 1
        if self._budget.is_flood(identity, now_ns):
            self._end_flood(identity, last)
        return False

    def _end_flood(self, identity: bytes, last: zmq.Frame) -> None:
        """End a connection with many dropped messages, and tell its peer why."""
        error = Error(MessageRefusal.TOO_MANY, "far more messages than a feeder sends: the connection ends")
        address = address_of(last)
        # If the peer has gone, its descriptor may belong to another connection by now.
        if self._send(identity, encode_message(error)) != zmq.EHOSTUNREACH:
            self._received.report(last, ConnectionRefusal.FLOOD)
        else:
            self._received.report_address(address, ConnectionRefusal.FLOOD)
        if (left_out := self._limit.due("flood")) is not None:
            log.warning("control_flood", address=address, left_out=left_out)

    def _message_arrived(self, parts: Sequence[zmq.Frame], n_parts: int) -> None:
        identity = parts[0].bytes
        if n_parts != PARTS:
            self._refuse(identity, "malformed", f"expected one part, got {n_parts - 1}")
            return
        try:
            message = decode_message(parts[1].bytes)
        except ProtocolError as error:
            self._refuse(
                identity, error.reason, str(error), error.version if isinstance(error, MessageVersionError) else None
            )
            return
        self._counters.control_messages_received += 1
        if isinstance(message, Command):
            self.send((identity,), self._execute(_peer(parts[1]), message))
        elif not self._may_feed(_peer(parts[1])):
            self.send((identity,), Error(NOT_A_FEEDER, "this key is not on the list of feeders: see SECURITY.md"))
        else:
            self._handle(identity, message)

    def _refuse(self, identity: bytes, reason: str, text: str, version: int | None = None) -> None:
        """Answer an unreadable message with an error, in the version of the sender if it is another one."""
        self._counters.control_messages_rejected += 1
        self._counters.messages_refused[MessageRefusal.MALFORMED] += 1
        if (left_out := self._limit.due(("refused", reason))) is not None:
            log.warning("control_message_refused", reason=reason, text=text, left_out=left_out)
        error = Error(reason, as_remark(text))
        if version is None:
            self.send((identity,), error)
        else:
            self._send(identity, encode_error(error, version))
            if self._drain is not None:
                self._drain.kick()


def _peer(frame: zmq.Frame) -> Peer:
    return Peer(address=address_of(frame), key=key_of(frame))
