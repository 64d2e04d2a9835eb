"""Clients of a node for programs with an asyncio event loop; `hltnode.client` serves all other programs.

async with Feeder.connect("tcp://node:5555", identity=identity) as feeder:
    await feeder.offer(FeedMep.of_mfps(0, 0, {source: mfp}))
    await feeder.finish(0)
"""

import asyncio
import contextlib
from collections import deque
from collections.abc import AsyncIterator, Iterable
from typing import Self

import zmq
import zmq.asyncio

from hltnode.client.consumers import (
    Consumer,
    ReceivedEvent,
    decisions_of,
    event_of,
    receive_events,
    subscribe_decisions,
)
from hltnode.client.feeder import Feeder, FeederIdentity, FeederRefusedError
from hltnode.client.keys import ClientKeys
from hltnode.client.mep import FeedMep
from hltnode.client.requests import RequestMessages, RequestPace, RequestRefusedError, connect_requests
from hltnode.client.shared_memory import SharedMemory, SharedMemoryError
from hltnode.protocol.buffers import Buffer
from hltnode.protocol.errors import ProtocolError
from hltnode.protocol.transport.decisions import MepDecision
from hltnode.protocol.transport.requests import Answer, Refusal, decode_answer

__all__ = [
    "Answer",
    "DecisionSubscriber",
    "EventReceiver",
    "FeedMep",
    "Feeder",
    "FeederIdentity",
    "FeederRefusedError",
    "MepDecision",
    "ReceivedEvent",
    "RequestRefusedError",
    "Requester",
    "SharedMemory",
    "SharedMemoryError",
]


class DecisionSubscriber(Consumer[zmq.asyncio.Socket]):
    """The decisions of a node, MEP by MEP, starting when the node receives the subscription.

    Use as context manager and iterate over it. With `shadow`, the node is a shadow (`shadow.of`).
    """

    def __init__(self, endpoint: str, *, keys: ClientKeys | None = None, shadow: bool = False) -> None:
        super().__init__(
            subscribe_decisions(zmq.asyncio.Context.instance().socket(zmq.SUB), endpoint, keys, shadow=shadow)
        )
        self._shadow = shadow
        self._of_group: deque[MepDecision] = deque()

    async def receive(self) -> MepDecision:
        """The next decision. Raises MessageError for a message of another version."""
        while not self._of_group:
            self._of_group.extend(decisions_of(await self._socket.recv_multipart(), shadow=self._shadow))
            self._gaps.came(self._of_group[0].seq)
        return self._of_group.popleft()

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


class Requester:
    """Asks a node what it would decide on some events, as `hltnode.client.Requester`. Use as async context manager.

    Several tasks may `ask` at the same time. To a busy node requests leave one by one (`RequestPace`).
    """

    def __init__(self, endpoint: str, *, keys: ClientKeys | None = None) -> None:
        self._socket = connect_requests(zmq.asyncio.Context.instance().socket(zmq.DEALER), endpoint, keys)
        self._messages = RequestMessages()
        self._waiting: dict[int, asyncio.Future[Answer]] = {}
        self._reader: asyncio.Task[None] | None = None
        self._pace = RequestPace()
        self._turn = asyncio.Lock()
        """Held by the request that leaves next."""
        self._ended = asyncio.Event()
        """A request is no longer on its way."""

    async def ask(self, mep: Buffer, timeout: float | None = None) -> Answer:
        """The answer of the node. Raises as `hltnode.client.Requester.ask`.

        When the task is cancelled, the node drops the request if it still waits.
        """
        if self._reader is None or self._reader.done():
            self._reader = asyncio.create_task(self._read())
        number, parts = self._messages.request(mep, timeout)
        answer = self._waiting[number] = asyncio.get_running_loop().create_future()
        async with asyncio.timeout(timeout):
            try:
                await self._wait_for_turn()
            except asyncio.CancelledError:
                del self._waiting[number]
                raise
            error: BaseException | None = None
            try:
                await self._socket.send_multipart(parts)
                found: Answer = await answer
                return found
            except RequestRefusedError as refused:
                error = refused
                raise
            finally:
                del self._waiting[number]
                self._pace.ended(error)
                self._ended.set()
                if not answer.done() or answer.cancelled():
                    with contextlib.suppress(zmq.ZMQError):
                        await self._socket.send(self._messages.cancel(number), zmq.NOBLOCK)

    async def _wait_for_turn(self) -> None:
        async with self._turn:
            while (left := self._pace.wait()) > 0:
                self._ended.clear()
                with contextlib.suppress(TimeoutError):
                    async with asyncio.timeout(left):
                        await self._ended.wait()
            self._pace.sent()

    async def _read(self) -> None:
        while True:
            message = await self._socket.recv()
            try:
                found = decode_answer(message)
            except ProtocolError as error:
                # It cannot be told which request it answers.
                self._fail(list(self._waiting), error)
                continue
            if isinstance(found, Refusal):
                self._fail([found.id] if found.id else list(self._waiting), RequestRefusedError(found))
            elif (answer := self._waiting.get(found.id)) is not None and not answer.done():
                answer.set_result(found)

    def _fail(self, numbers: Iterable[int], error: Exception) -> None:
        for number in numbers:
            if (answer := self._waiting.get(number)) is not None and not answer.done():
                answer.set_exception(error)

    async def close(self) -> None:
        """Close the connection; requests without an answer fail with CancelledError."""
        if self._reader is not None:
            self._reader.cancel()
            await asyncio.gather(self._reader, return_exceptions=True)
        for answer in self._waiting.values():
            answer.cancel()
        self._socket.close()

    async def __aenter__(self) -> Self:
        return self

    async def __aexit__(self, *_error: object) -> None:
        await self.close()
