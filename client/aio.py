"""Clients of a node for programs with an asyncio event loop; `hltnode.client` has the same for all others.

async with Feeder.connect("tcp://node:5555", identity=identity) as feeder:
    await feeder.offer(FeedMep.of_mfps(0, 0, {source: mfp}))
    await feeder.finish(0)
"""

from collections.abc import AsyncIterator

import zmq
import zmq.asyncio

from hltnode.client.consumers import GapCounter, ReceivedEvent, event_of, receive_events, subscribe_decisions
from hltnode.client.feeder import Feeder, FeederIdentity, FeederRefusedError
from hltnode.client.keys import ClientKeys
from hltnode.client.mep import FeedMep
from hltnode.protocol.transport.decisions import MepDecision, decode_decision

__all__ = [
    "DecisionSubscriber",
    "EventReceiver",
    "FeedMep",
    "Feeder",
    "FeederIdentity",
    "FeederRefusedError",
    "MepDecision",
    "ReceivedEvent",
]


class DecisionSubscriber:
    """The decisions of a node, one message for each MEP, from the time on at which the subscription has arrived.

    Use as context manager and iterate over it.
    """

    def __init__(self, endpoint: str, *, keys: ClientKeys | None = None) -> None:
        self._socket = subscribe_decisions(zmq.asyncio.Context.instance().socket(zmq.SUB), endpoint, keys)
        self._gaps = GapCounter()

    @property
    def missed(self) -> int:
        """Messages that did not arrive because this consumer was too slow."""
        return self._gaps.missed

    async def receive(self) -> MepDecision:
        """The next decision. Raises MessageError for one of another version."""
        decision = decode_decision(await self._socket.recv())
        self._gaps.came(decision.seq)
        return decision

    async def __aiter__(self) -> AsyncIterator[MepDecision]:
        while True:
            yield await self.receive()

    def close(self) -> None:
        """Close the connection."""
        self._socket.close()

    def __enter__(self) -> "DecisionSubscriber":
        return self

    def __exit__(self, *_error: object) -> None:
        self.close()


class EventReceiver:
    """The kept events of a node (`events.endpoint`, `errors.endpoint`). Use as context manager and iterate over it.

    With `subscribes` all events come to every receiver (kind `pub`), else each comes to one of them (kind `push`).
    """

    def __init__(self, endpoint: str, *, subscribes: bool = False, keys: ClientKeys | None = None) -> None:
        pattern = zmq.SUB if subscribes else zmq.PULL
        self._socket = receive_events(zmq.asyncio.Context.instance().socket(pattern), endpoint, keys)
        self._gaps = GapCounter()

    @property
    def missed(self) -> int:
        """Events that did not arrive here; with the kind `push` those of the other receivers are among them."""
        return self._gaps.missed

    async def receive(self) -> ReceivedEvent:
        """The next event. Raises MessageError for what is no event message."""
        event = event_of(await self._socket.recv_multipart())
        self._gaps.came(event.sequence)
        return event

    async def __aiter__(self) -> AsyncIterator[ReceivedEvent]:
        while True:
            yield await self.receive()

    def close(self) -> None:
        """Close the connection."""
        self._socket.close()

    def __enter__(self) -> "EventReceiver":
        return self

    def __exit__(self, *_error: object) -> None:
        self.close()
