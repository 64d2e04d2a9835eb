"""Decisions on an XPUB socket, where loss is seen and counted.

A plain PUB socket drops silently when a subscriber is slow: 187,000 of 200,000 messages in a measurement, without an
error. With XPUB_NODROP the send fails instead, for all subscribers at once, and the policy of the output decides. The
default tries again for a bounded time, then drops the decision and counts it.
"""

import time
from collections.abc import Callable, Iterable
from dataclasses import replace

import zmq

from hltnode.daemon.counters import OutputCounters
from hltnode.daemon.outlet import Message, Outlet
from hltnode.daemon.socket_binding import bind_socket
from hltnode.daemon.vocabulary import OutputName, SlownessPolicy
from hltnode.protocol.decisions import MepDecision, encode_decision

# Decisions (some 10 kB) that wait per subscriber; libzmq's default, about 10 MB.
HIGH_WATER_MARK = 1000
# A subscription is a short topic; nothing else comes from subscribers.
MAX_SUBSCRIPTION_BYTES = 1024
# Subscriptions looked at per call, so that a flood of them cannot hold the loop.
SUBSCRIPTION_BUDGET = 256
# Twice the default flush deadline is long for a consumer that lives and short for the slots that wait behind it.
PATIENCE_NS = 50_000_000


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
        counters: OutputCounters,
        *,
        policy: SlownessPolicy = SlownessPolicy.DROP_NEW,
        high_water_mark: int = HIGH_WATER_MARK,
        prepare: Callable[[zmq.Socket[bytes]], None] = lambda _socket: None,
        clock_ns: Callable[[], int] = time.monotonic_ns,
    ) -> None:
        self._counters = counters
        self.outlet = Outlet(
            OutputName.DECISIONS,
            policy,
            self._try_send,
            counters,
            patience_ns=PATIENCE_NS,
            queue=high_water_mark,
            clock_ns=clock_ns,
        )
        options = {
            zmq.XPUB_NODROP: 1,
            # Each subscription and its end is reported, also the second one to the same topic: they can be counted.
            zmq.XPUB_VERBOSER: 1,
            zmq.SNDHWM: high_water_mark,
            zmq.MAXMSGSIZE: MAX_SUBSCRIPTION_BYTES,
        }
        self._socket, self.endpoint = bind_socket(context, zmq.XPUB, endpoint, options, prepare)

    async def publish(self, decisions: Iterable[MepDecision]) -> None:
        """Send the decisions in order, each with the next sequence number, as the policy of the output says."""
        self.track_subscriptions()
        await self.outlet.put_all(decisions, lambda decision, seq: (encode_decision(replace(decision, seq=seq)),))

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
        self.outlet.pump()
        self.outlet.close()
        self._socket.close(linger=linger_ms)

    def _try_send(self, message: Message) -> bool:
        try:
            self._socket.send(message[0], zmq.NOBLOCK)
        except zmq.Again:
            return False
        return True
