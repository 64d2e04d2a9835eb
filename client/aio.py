"""Clients of a node for programs with an asyncio event loop; `hltnode.client` serves all other programs.

async with Feeder.connect("tcp://node:5555", identity=identity) as feeder:
    await feeder.offer(FeedMep.of_mfps(0, 0, {source: mfp}))
    await feeder.finish(0)
"""

from collections.abc import AsyncIterator

import zmq
import zmq.asyncio

from hltnode.client.consumers import Consumer, ReceivedEvent, event_of, receive_events, subscribe_decisions
from hltnode.client.feeder import Feeder, FeederIdentity, FeederRefusedError
from hltnode.client.keys import ClientKeys
from hltnode.client.mep import FeedMep
from hltnode.client.shared_memory import SharedMemory, SharedMemoryError
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
    "SharedMemory",
    "SharedMemoryError",
]


class DecisionSubscriber(Consumer[zmq.asyncio.Socket]):
    """The decisions of a node, one message per MEP, starting when the node receives the subscription.

    Use as context manager and iterate over it.
    """

    def __init__(self, endpoint: str, *, keys: ClientKeys | None = None) -> None:
        super().__init__(subscribe_decisions(zmq.asyncio.Context.instance().socket(zmq.SUB), endpoint, keys))

    async def receive(self) -> MepDecision:
        """The next decision. Raises MessageError for a message of another version."""
        decision = decode_decision(await self._socket.recv())
        self._gaps.came(decision.seq)
        return decision

    async def __aiter__(self) -> AsyncIterator[MepDecision]:
        while True:
            yield await self.receive()


class EventReceiver(Consumer[zmq.asyncio.Socket]):
    """The kept events of a node (`events.endpoint`, `errors.endpoint`). Use as context manager and iterate over it.

    With `subscribes` every receiver gets all events (kind `pub`), else each event goes to one receiver (kind `push`).
    """

    def __init__(self, endpoint: str, *, subscribes: bool = False, keys: ClientKeys | None = None) -> None:
        pattern = zmq.SUB if subscribes else zmq.PULL
        super().__init__(receive_events(zmq.asyncio.Context.instance().socket(pattern), endpoint, keys))

    async def receive(self) -> ReceivedEvent:
        """The next event. Raises MessageError for any other message."""
        event = event_of(await self._socket.recv_multipart())
        self._gaps.came(event.sequence)
        return event

    async def __aiter__(self) -> AsyncIterator[ReceivedEvent]:
        while True:
            yield await self.receive()
