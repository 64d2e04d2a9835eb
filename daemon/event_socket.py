"""Kept events on a socket, for consumers that do not want to wait for files."""

from collections.abc import Callable

import zmq

from hltnode.daemon.counters import OutputCounters
from hltnode.daemon.outlet import Message, Outlet
from hltnode.daemon.socket_binding import bind_socket
from hltnode.daemon.vocabulary import EventSocketKind, EventStream, OutputName, SlownessPolicy
from hltnode.protocol.event_message import ACCEPTED, ERROR, EventHeader, encode_event_header

TOPICS = {EventStream.ACCEPTED: ACCEPTED, EventStream.ERROR: ERROR}


class OutputSocket:
    """A bound PUSH or PUB socket that refuses instead of dropping behind our back.

    Raises:
        zmq.ZMQError: the endpoint cannot be bound.

    Args:
        prepare: makes the socket secure before it is bound.
    """

    def __init__(
        self,
        context: zmq.Context[zmq.Socket[bytes]],
        endpoint: str,
        kind: EventSocketKind,
        *,
        high_water_mark: int,
        prepare: Callable[[zmq.Socket[bytes]], None] = lambda _socket: None,
    ) -> None:
        # Consumers have nothing to say but subscriptions.
        options = {zmq.SNDHWM: high_water_mark, zmq.MAXMSGSIZE: 1024}
        if kind is EventSocketKind.PUB:
            options[zmq.XPUB_NODROP] = 1
        pattern = zmq.PUSH if kind is EventSocketKind.PUSH else zmq.PUB
        self._socket, self.endpoint = bind_socket(context, pattern, endpoint, options, prepare)

    def try_send(self, message: Message) -> bool:
        """Send all parts, or return False when the consumer's queue is full or nobody is there to take (push)."""
        try:
            self._socket.send_multipart(message, zmq.NOBLOCK)
        except zmq.Again:
            return False
        return True

    def close(self, linger_ms: int) -> None:
        """Close; what is queued may take `linger_ms` to leave while the context ends."""
        self._socket.close(linger=linger_ms)


class EventOutput:
    """One stream of kept events on one socket."""

    def __init__(
        self, name: OutputName, socket: OutputSocket, policy: SlownessPolicy, counters: OutputCounters, *, queue: int
    ) -> None:
        self.endpoint = socket.endpoint
        self._socket = socket
        self.outlet = Outlet(name, policy, socket.try_send, counters, queue=queue)

    def close(self, linger_ms: int) -> None:
        """Close the socket; what the policy still keeps is counted as dropped."""
        self.outlet.pump()
        self.outlet.close()
        self._socket.close(linger_ms)


def event_message(stream: EventStream, run: int, record: bytes, sequence: int) -> Message:
    """The two parts of a message: header and MDF record."""
    return encode_event_header(EventHeader(TOPICS[stream], run, sequence)), record
