"""The control socket of the node (ROUTER): messages to and from feeders, heartbeats, garbage answered and counted."""

import asyncio
from collections.abc import Callable, Iterable

import zmq

from hltnode.daemon.common.peer import Peer
from hltnode.daemon.common.zmq_sockets import HEARTBEAT, MAX_CONTROL_BYTES, SocketDrain, bind_socket
from hltnode.daemon.monitoring.counters import Counters
from hltnode.daemon.readout.reading_clock import ReadingClock
from hltnode.protocol.errors import ProtocolError
from hltnode.protocol.transport.control_messages import ControlMessage, decode_message, encode_message
from hltnode.protocol.transport.feeder_messages import Error
from hltnode.protocol.transport.run_control_messages import Command, Reply

# Small messages. A feeder that leaves more of them unread gets what it missed with its next hello.
CONTROL_HWM = 1000


class ControlSocket:
    """Owner of the ROUTER socket.

    Args:
        prepare: makes the socket secure before it is bound.

    Raises:
        zmq.ZMQError: the endpoint cannot be bound.
    """

    def __init__(
        self,
        context: zmq.Context[zmq.Socket[bytes]],
        endpoint: str,
        counters: Counters,
        reading_clock: ReadingClock,
        prepare: Callable[[zmq.Socket[bytes]], None],
    ) -> None:
        self._counters = counters
        self._reading_clock = reading_clock
        options = {
            zmq.SNDHWM: CONTROL_HWM,
            zmq.RCVHWM: CONTROL_HWM,
            zmq.MAXMSGSIZE: MAX_CONTROL_BYTES,
            # Else a message to a feeder that is gone would be dropped without an error.
            zmq.ROUTER_MANDATORY: 1,
            **HEARTBEAT,
        }
        self._socket, self.endpoint = bind_socket(context, zmq.ROUTER, endpoint, options, prepare)
        self._drain: SocketDrain[list[zmq.Frame]] | None = None

    def start(
        self,
        loop: asyncio.AbstractEventLoop,
        handle: Callable[[bytes, ControlMessage], None],
        execute: Callable[[Peer, Command], Reply],
    ) -> None:
        """Begin to receive.

        Args:
            handle: takes every message of a feeder that could be decoded, with the sender's identity.
            execute: takes every command of an operator, with what is known of the sender, and answers it.
        """
        self._handle = handle
        self._execute = execute
        self._drain = SocketDrain(loop, self._socket, self._receive, self._parts_arrived, self._reading_clock.read)
        self._drain.start()

    def read(self) -> bool:
        """Take what is there; False if there is more than fits one turn of the loop."""
        return self._drain is None or self._drain.read()

    def close(self, linger_ms: int) -> None:
        """Close; what is queued may take `linger_ms` to leave while the context ends."""
        if self._drain is not None:
            self._drain.stop()
        self._socket.close(linger=linger_ms)

    def send(self, identities: Iterable[bytes], message: ControlMessage) -> None:
        """Send to each of these peers that is there and reads; others get what they missed with their next hello."""
        raw = encode_message(message)
        for identity in identities:
            self._send(identity, raw)
        if self._drain is not None:
            self._drain.kick()

    def reaches(self, identity: bytes, message: ControlMessage) -> bool:
        """Send to one peer; False if its connection is gone, as it is after its process has ended.

        If its machine is gone or cut off, the heartbeat notices it 3 to 4 s later.
        """
        is_there = self._send(identity, encode_message(message))
        if self._drain is not None:
            self._drain.kick()
        return is_there

    def _send(self, identity: bytes, raw: bytes) -> bool:
        """False if no connection has this identity any more."""
        try:
            self._socket.send_multipart((identity, raw), zmq.NOBLOCK)
        except zmq.ZMQError as error:
            if error.errno not in (zmq.EAGAIN, zmq.EHOSTUNREACH):
                raise
            self._counters.control_messages_unsent += 1
            return error.errno == zmq.EAGAIN
        return True

    def _receive(self) -> list[zmq.Frame]:
        # Frames and not bytes: they have the properties of their sender. Copied messages do not.
        return self._socket.recv_multipart(zmq.NOBLOCK, copy=False)

    def _parts_arrived(self, parts: list[zmq.Frame]) -> None:
        identity = parts[0].bytes
        if len(parts) != 2:
            self._refuse(identity, "malformed", f"one part expected, {len(parts) - 1} came")
            return
        try:
            message = decode_message(parts[1].bytes)
        except ProtocolError as error:
            self._refuse(identity, error.reason, str(error))
            return
        self._counters.control_messages_received += 1
        if isinstance(message, Command):
            self.send((identity,), self._execute(_peer(parts[1]), message))
        else:
            self._handle(identity, message)

    def _refuse(self, identity: bytes, reason: str, text: str) -> None:
        self._counters.control_messages_rejected += 1
        self.send((identity,), Error(reason, text[:200]))


def _peer(frame: zmq.Frame) -> Peer:
    return Peer(address=_property(frame, "Peer-Address"), key=_property(frame, "User-Id"))


def _property(frame: zmq.Frame, name: str) -> str:
    try:
        return str(frame.get(name))
    except zmq.ZMQError:
        # Not known of this connection: without CURVE a peer has no user id.
        return ""
