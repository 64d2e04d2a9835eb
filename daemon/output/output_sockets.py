"""Socket outputs: decisions on XPUB, kept events on PUSH or PUB.

Loss on the decision socket is counted. A plain PUB socket drops silently when a subscriber is slow: 187,000 of 200,000
messages in a measurement, without an error. With XPUB_NODROP the send fails instead, for all subscribers at once. Then
the policy of the output decides. The default retries for a bounded time, then drops the decision and counts it.
"""

import asyncio
import threading
import time
from collections.abc import Callable, Iterable, Sequence

import zmq
from msgspec.structs import replace

from hltnode.daemon.common.vocabulary import EventSocketKind, EventStream, OutputName, SlowConsumerPolicy
from hltnode.daemon.common.zmq_sockets import SocketWatch, bind_socket
from hltnode.daemon.monitoring.counters import OutputCounters
from hltnode.daemon.output.policy_sender import PolicySender
from hltnode.daemon.output.slow_consumer_policy import Message
from hltnode.protocol.transport.decisions import DecisionGroup, MepDecision, pack_decision
from hltnode.protocol.transport.event_message import ACCEPTED, ERROR, EventHeader, encode_event_header

TOPICS = {EventStream.ACCEPTED: ACCEPTED, EventStream.ERROR: ERROR}
# Decisions queued per subscriber, libzmq's default; about 10 MB with 1000 events per MEP and a small menu.
HIGH_WATER_MARK = 1000
# A subscription is a short topic; the largest message from a consumer is the CURVE handshake.
MAX_CONSUMER_BYTES = 512
# Subscriptions read per call, so that a flood of them cannot block the loop.
SUBSCRIPTION_BUDGET = 256


class DecisionPublisher:
    """The decision socket. All calls come from the thread of the event loop, except `send_at_once`.

    A lock guards the socket: another thread may use it too, but not at the same time.

    Args:
        drop_after_ns: with `drop_new`, how long the decisions of a batch wait for a slow subscriber.
        topic: first part of each message; None: messages of one part.
        prepare: applies the security settings before the socket is bound.

    Raises:
        BindError: the endpoint cannot be bound.
    """

    def __init__(
        self,
        context: zmq.Context[zmq.Socket[bytes]],
        endpoint: str,
        counters: OutputCounters,
        *,
        policy: SlowConsumerPolicy = SlowConsumerPolicy.DROP_NEW,
        drop_after_ns: int = 0,
        high_water_mark: int = HIGH_WATER_MARK,
        topic: bytes | None = None,
        prepare: Callable[[zmq.Socket[bytes]], None] = lambda _socket: None,
        clock_ns: Callable[[], int] = time.monotonic_ns,
    ) -> None:
        self._counters = counters
        self._lock = threading.RLock()
        self._publishing = False
        self._closed = False
        self._topic = topic
        self.sender = PolicySender(
            OutputName.DECISIONS,
            policy,
            self._try_send,
            counters,
            drop_after_ns=drop_after_ns,
            queue=high_water_mark,
            clock_ns=clock_ns,
        )
        options = {
            zmq.XPUB_NODROP: 1,
            # Reports every subscription and its end, also repeated ones to the same topic, so they can be counted.
            zmq.XPUB_VERBOSER: 1,
            zmq.SNDHWM: high_water_mark,
            zmq.MAXMSGSIZE: MAX_CONSUMER_BYTES,
        }
        self._socket, self.endpoint = bind_socket(context, zmq.XPUB, endpoint, options, prepare)
        self._watch = SocketWatch(self._socket, self.changed, self._lock)

    def start(self, loop: asyncio.AbstractEventLoop) -> None:
        """Start to watch the socket for subscriptions and for room for queued messages."""
        self._watch.start(loop)
        self.changed()

    async def publish(self, decisions: Iterable[MepDecision | DecisionGroup]) -> None:
        """Send decisions in order, each with the next sequence number, according to the policy."""
        self._track_subscriptions()
        with self._lock:
            self._publishing = True
        try:
            await self.sender.put_all(decisions, self._numbered)
        finally:
            self._publishing = False
        self.changed()

    def send_at_once(self, decisions: Sequence[MepDecision | DecisionGroup]) -> int:
        """Send decisions in order as far as all subscribers have room; returns how many. Any thread.

        None is sent while `publish` waits for a slow subscriber: sequence numbers must leave in order. The caller adds
        them to the counters and calls `changed`, both in the thread of the event loop.
        """
        with self._lock:
            if self._publishing or self._closed:
                return 0
            return self.sender.send_at_once(decisions, self._numbered)

    def send_written(self, write: Callable[[int], bytes]) -> bool:
        """Send the message that `write` makes of its sequence number, as `send_at_once` does; False if it must wait."""
        with self._lock:
            if self._publishing or self._closed:
                return False
            return self.sender.send_at_once((write,), self._written) == 1

    def _written(self, write: Callable[[int], bytes], seq: int) -> Message:
        return (write(seq),) if self._topic is None else (self._topic, write(seq))

    def _numbered(self, decision: MepDecision | DecisionGroup, seq: int) -> Message:
        return self.message(replace(decision, seq=seq))

    def message(self, decision: MepDecision | DecisionGroup) -> Message:
        """The parts of the message of a decision."""
        encoded = pack_decision(decision)
        return (encoded,) if self._topic is None else (self._topic, encoded)

    def changed(self) -> None:
        """Count subscriptions and send queued messages; called when the socket may be readable or writable."""
        self._track_subscriptions()
        self.sender.pump()

    def _track_subscriptions(self) -> None:
        for _ in range(SUBSCRIPTION_BUDGET):
            try:
                with self._lock:
                    message = self._socket.recv(zmq.NOBLOCK)
            except zmq.Again:
                return
            if message[:1] == b"\x01":
                self._counters.subscribers += 1
            elif message[:1] == b"\x00":
                self._counters.subscribers -= 1
        self._watch.again()

    def close(self, linger_ms: int) -> None:
        """Close the socket; queued messages may be sent for up to `linger_ms` while the context ends."""
        self._watch.stop()
        self.sender.pump()
        self.sender.close()
        with self._lock:
            self._closed = True
            self._socket.close(linger=linger_ms)

    def _try_send(self, message: Message) -> bool:
        try:
            with self._lock:
                if len(message) == 1:
                    self._socket.send(message[0], zmq.NOBLOCK)
                else:
                    self._socket.send_multipart(message, zmq.NOBLOCK)
        except zmq.Again:
            return False
        return True


class OutputSocket:
    """A bound PUSH or PUB socket whose send fails for a slow consumer instead of dropping silently.

    Raises:
        BindError: the endpoint cannot be bound.

    Args:
        prepare: applies the security settings before the socket is bound.
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
        options = {zmq.SNDHWM: high_water_mark, zmq.MAXMSGSIZE: MAX_CONSUMER_BYTES}
        if kind is EventSocketKind.PUB:
            options[zmq.XPUB_NODROP] = 1
        pattern = zmq.PUSH if kind is EventSocketKind.PUSH else zmq.PUB
        self._socket, self.endpoint = bind_socket(context, pattern, endpoint, options, prepare)
        self._watch: SocketWatch | None = None

    def start(self, loop: asyncio.AbstractEventLoop, has_room: Callable[[], None]) -> None:
        """Call `has_room` when a consumer may have room again."""
        self._watch = SocketWatch(self._socket, has_room)
        self._watch.start(loop)

    def try_send(self, message: Message) -> bool:
        """Send all parts, or return False when the consumer's queue is full or (push) no consumer is connected."""
        try:
            self._socket.send_multipart(message, zmq.NOBLOCK)
        except zmq.Again:
            return False
        return True

    def close(self, linger_ms: int) -> None:
        """Close; queued messages may be sent for up to `linger_ms` while the context ends."""
        if self._watch is not None:
            self._watch.stop()
        self._socket.close(linger=linger_ms)


class EventOutput:
    """One stream of kept events on one socket."""

    def __init__(
        self,
        name: OutputName,
        socket: OutputSocket,
        policy: SlowConsumerPolicy,
        counters: OutputCounters,
        *,
        queue: int,
    ) -> None:
        self.endpoint = socket.endpoint
        self._socket = socket
        self.sender = PolicySender(name, policy, socket.try_send, counters, queue=queue)

    def start(self, loop: asyncio.AbstractEventLoop) -> None:
        """Start to watch the socket for room for queued messages."""
        self._socket.start(loop, self.sender.pump)

    def close(self, linger_ms: int) -> None:
        """Close the socket; messages still queued are counted as dropped."""
        self.sender.pump()
        self.sender.close()
        self._socket.close(linger_ms)


def event_message(stream: EventStream, run: int, record: memoryview, sequence: int) -> Message:
    """The two parts of a message: header and MDF record."""
    return encode_event_header(EventHeader(TOPICS[stream], run, sequence)), record
