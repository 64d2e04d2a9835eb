"""Decisions on an XPUB socket, where loss is seen and counted.

A plain PUB socket drops silently when a subscriber is slow: 187,000 of 200,000 messages in a measurement, without an
error. With XPUB_NODROP the send fails instead, for all subscribers at once: we try again for a bounded time, then drop
the decision and count it. Every decision has a sequence number, a dropped one too, so that subscribers see their gaps.
"""

import asyncio
import time
from collections.abc import Callable, Iterable
from dataclasses import replace

import zmq

from hltnode.daemon.counters import PublisherCounters
from hltnode.daemon.log import RateLimit, get_logger
from hltnode.daemon.vocabulary import DropReason
from hltnode.protocol.decisions import MepDecision, encode_decision

# Decisions (some 10 kB) that wait per subscriber; libzmq's default, about 10 MB.
HIGH_WATER_MARK = 1000
# A subscription is a short topic; nothing else comes from subscribers.
MAX_SUBSCRIPTION_BYTES = 1024
# Subscriptions looked at per call, so that a flood of them cannot hold the loop.
SUBSCRIPTION_BUDGET = 256
# Twice the default flush deadline is long for a consumer that lives and short for the slots that wait behind it.
PATIENCE_NS = 50_000_000
RETRY_SECONDS = 0.001

log = get_logger("publisher")


class DecisionPublisher:
    """Owner of the decision socket; all calls from the event loop's thread.

    Args:
        prepare: makes the socket secure before it is bound.

    Raises:
        zmq.ZMQError: the endpoint cannot be bound.
    """

    def __init__(
        self,
        context: zmq.Context[zmq.Socket[bytes]],
        endpoint: str,
        counters: PublisherCounters,
        *,
        high_water_mark: int = HIGH_WATER_MARK,
        prepare: Callable[[zmq.Socket[bytes]], None] = lambda _socket: None,
        clock_ns: Callable[[], int] = time.monotonic_ns,
    ) -> None:
        self._counters = counters
        self._clock_ns = clock_ns
        self._limit = RateLimit(10_000_000_000, clock_ns)
        self._sequence = 0
        self._gave_up = False
        self._socket = context.socket(zmq.XPUB)
        try:
            self._socket.setsockopt(zmq.XPUB_NODROP, 1)
            # Each subscription and its end is reported, also the second one to the same topic: they can be counted.
            self._socket.setsockopt(zmq.XPUB_VERBOSER, 1)
            self._socket.setsockopt(zmq.SNDHWM, high_water_mark)
            self._socket.setsockopt(zmq.MAXMSGSIZE, MAX_SUBSCRIPTION_BYTES)
            self._socket.setsockopt(zmq.LINGER, 0)
            prepare(self._socket)
            self._socket.bind(endpoint)
        except zmq.ZMQError:
            self._socket.close()
            raise
        self.endpoint: str = self._socket.getsockopt_string(zmq.LAST_ENDPOINT)
        """Where the socket is bound; the true port for tcp://127.0.0.1:*."""

    async def publish(self, decisions: Iterable[MepDecision]) -> None:
        """Send the decisions in order, each with the next sequence number.

        Waits at most PATIENCE_NS for slow subscribers. After a drop it does not wait again until a send succeeds: one
        stopped subscriber shall cost its time once and not per batch.
        """
        self.track_subscriptions()
        deadline_ns = self._clock_ns() + PATIENCE_NS
        for decision in decisions:
            message = encode_decision(replace(decision, seq=self._sequence))
            self._sequence += 1
            while not (sent := self._try_send(message)):
                if self._gave_up or self._clock_ns() >= deadline_ns:
                    break
                await asyncio.sleep(RETRY_SECONDS)
            self._gave_up = not sent
            if sent:
                self._counters.published += 1
            else:
                self._counters.dropped[DropReason.SLOW_SUBSCRIBER] += 1
                left_out = self._limit.due("dropped")
                if left_out is not None:
                    log.warning("decision_dropped", mep=decision.mep, run=decision.run, left_out=left_out)

    def track_subscriptions(self) -> None:
        """Count subscriptions that came or went; to be called now and then also when nothing is published."""
        for _ in range(SUBSCRIPTION_BUDGET):
            try:
                message = self._socket.recv(zmq.NOBLOCK)
            except zmq.Again:
                return
            if message[:1] == b"\x01":
                self._counters.subscribers += 1
            elif message[:1] == b"\x00":
                self._counters.subscribers -= 1

    def close(self, linger_ms: int) -> None:
        """Close the socket; what is queued may take `linger_ms` to leave while the context ends."""
        self._socket.close(linger=linger_ms)

    def _try_send(self, message: bytes) -> bool:
        try:
            self._socket.send(message, zmq.NOBLOCK)
        except zmq.Again:
            self._counters.blocked += 1
            return False
        return True
