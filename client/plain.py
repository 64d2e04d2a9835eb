"""Clients of a node for programs without an event loop."""

import asyncio
import contextlib
import threading
import time
from collections import deque
from collections.abc import Coroutine, Iterator
from typing import Any, Self, TypeVar

import zmq

from hltnode.client import feeder as aio_feeder
from hltnode.client.consumers import (
    Consumer,
    ReceivedEvent,
    decisions_of,
    event_of,
    receive_events,
    subscribe_decisions,
)
from hltnode.client.feeder import FeederIdentity, Report, report_nothing
from hltnode.client.keys import ClientKeys
from hltnode.client.mep import FeedMep
from hltnode.client.refused_fragments import RefusedCount, RefusedFragments
from hltnode.client.requests import RequestMessages, RequestPace, RequestRefusedError, answer_in, connect_requests
from hltnode.client.shared_memory import SharedMemory
from hltnode.client.sockets import PLAIN, FeederKeys
from hltnode.protocol.buffers import Buffer
from hltnode.protocol.errors import ProtocolError
from hltnode.protocol.transport.decisions import MepDecision
from hltnode.protocol.transport.requests import Answer

Result = TypeVar("Result")


class Feeder:
    """Sends MEPs of some sources to one node, and keeps each until the node acknowledges it.

    A thread sends hellos, handles acknowledgements and repeats fragments on request, also after the node was lost and
    returned. Use as context manager; do not call from several threads at once.

        with Feeder("tcp://node:5555", identity=identity) as feeder:
            for mep in meps:
                feeder.offer(mep)
            feeder.finish()

    Args:
        data: data endpoint of the node.
        control: its control endpoint; the next port if not given.
        identity: name, run and sources of this feeder.
        report: logs the events between feeder and node; called in the thread.
        shared_memory: memory in which the node reads the fragments, with the data endpoint shm:///PATH (the memory
            socket of a node on this machine). Default: memory of the default size.

    Raises:
        ValueError: there is no next port.
    """

    def __init__(
        self,
        data: str,
        control: str | None = None,
        *,
        identity: FeederIdentity,
        keys: FeederKeys = PLAIN,
        report: Report = report_nothing,
        shared_memory: SharedMemory | None = None,
    ) -> None:
        self._loop = asyncio.new_event_loop()
        self._thread = threading.Thread(target=self._loop.run_forever, name="feeder", daemon=True)
        self._thread.start()
        self._last_mep: int | None = None
        try:
            self._feeder = self._run(self._open(data, control, identity, keys, report, shared_memory))
        except BaseException:
            self._end_thread()
            raise

    @staticmethod
    async def _open(
        data: str,
        control: str | None,
        identity: FeederIdentity,
        keys: FeederKeys,
        report: Report,
        shared_memory: SharedMemory | None,
    ) -> aio_feeder.Feeder:
        feeder = aio_feeder.Feeder.connect(
            data, control, identity=identity, keys=keys, report=report, shared_memory=shared_memory
        )
        return await feeder.__aenter__()

    @property
    def unacknowledged(self) -> int:
        """Number of MEPs that the node has not acknowledged yet; the feeder keeps them."""
        return self._feeder.window.unacknowledged

    @property
    def refused(self) -> dict[str, RefusedCount]:
        """Fragments that the node refused permanently, by reason: no event contains them."""
        return RefusedFragments.count([self._feeder.window.refused])

    def offer(self, mep: FeedMep, timeout: float | None = None) -> None:
        """Send a MEP; waits for credit of the node.

        Raises FeederRefusedError when the node refuses this feeder, TimeoutError after `timeout` seconds without
        credit; the MEP is then not sent.
        """
        self._run(self._feeder.offer(mep), timeout)
        self._last_mep = mep.mep

    def finish(self, timeout: float | None = None) -> None:
        """Announce the end of the run, and wait until every MEP is acknowledged.

        Raises FeederRefusedError, and TimeoutError after `timeout` seconds.
        """
        self._run(self._feeder.finish(self._last_mep), timeout)

    def close(self) -> None:
        """Leave the node. MEPs that are not acknowledged are lost unless the next process sends them again."""
        if self._thread.is_alive():
            self._run(self._feeder.__aexit__())
            self._end_thread()

    def __enter__(self) -> "Feeder":
        return self

    def __exit__(self, *_error: object) -> None:
        self.close()

    def _run(self, work: Coroutine[Any, Any, Result], timeout: float | None = None) -> Result:
        async def limited() -> Result:
            async with asyncio.timeout(timeout):
                return await work

        return asyncio.run_coroutine_threadsafe(limited(), self._loop).result()

    def _end_thread(self) -> None:
        self._loop.call_soon_threadsafe(self._loop.stop)
        self._thread.join()
        self._loop.close()


class DecisionSubscriber(Consumer[zmq.Socket[bytes]]):
    """The decisions of a node, MEP by MEP, starting when the node receives the subscription.

    Use as context manager and iterate over it. With `shadow`, the node is a shadow (`shadow.of`).
    """

    def __init__(self, endpoint: str, *, keys: ClientKeys | None = None, shadow: bool = False) -> None:
        super().__init__(subscribe_decisions(zmq.Context.instance().socket(zmq.SUB), endpoint, keys, shadow=shadow))
        self._shadow = shadow
        self._of_group: deque[MepDecision] = deque()

    def receive(self, timeout: float | None = None) -> MepDecision:
        """The next decision. Raises MessageError for another version, TimeoutError after `timeout` seconds."""
        if not self._of_group:
            _wait(self._socket, timeout)
            self._of_group.extend(decisions_of(self._socket.recv_multipart(), shadow=self._shadow))
            self._gaps.came(self._of_group[0].seq)
        return self._of_group.popleft()

    def __iter__(self) -> Iterator[MepDecision]:
        while True:
            yield self.receive()


class EventReceiver(Consumer[zmq.Socket[bytes]]):
    """The kept events of a node (`events.endpoint`, `errors.endpoint`). Use as context manager and iterate over it.

    With `subscribes` every receiver gets all events (kind `pub`), else each event goes to one receiver (kind `push`).
    """

    def __init__(self, endpoint: str, *, subscribes: bool = False, keys: ClientKeys | None = None) -> None:
        pattern = zmq.SUB if subscribes else zmq.PULL
        super().__init__(receive_events(zmq.Context.instance().socket(pattern), endpoint, keys))

    def receive(self, timeout: float | None = None) -> ReceivedEvent:
        """The next event. Raises MessageError for any other message, TimeoutError after `timeout` seconds."""
        _wait(self._socket, timeout)
        event = event_of(self._socket.recv_multipart())
        self._gaps.came(event.sequence)
        return event

    def __iter__(self) -> Iterator[ReceivedEvent]:
        while True:
            yield self.receive()


class Requester:
    """Asks a node what it would decide on some events, which belong to no run. Use as context manager.

        with Requester("tcp://node:5562") as requester:
            answer = requester.ask(encode_mep(mfps))
            answer.accepted_events()

    A request is a MEP: the MFPs of all sources for the same events (`hltnode.protocol.encode_mep`). The node must have
    a request socket (`requests.endpoint`). `ask` waits for one answer; with `send` and `receive` several requests may
    be on their way, and their answers come in any order. Requests to a busy node leave after a pause (`RequestPace`).
    """

    def __init__(self, endpoint: str, *, keys: ClientKeys | None = None) -> None:
        socket: zmq.Socket[bytes] = zmq.Context.instance().socket(zmq.DEALER)
        self._socket = connect_requests(socket, endpoint, keys)
        self._messages = RequestMessages()
        self._pace = RequestPace()

    def ask(self, mep: Buffer, timeout: float | None = None) -> Answer:
        """The answer of the node; answers to earlier requests that come before it are dropped.

        Raises RequestRefusedError, MessageError for an answer of another version, TimeoutError after `timeout` seconds:
        the node then drops the request if it still waits.
        """
        end = None if timeout is None else time.monotonic() + timeout
        number = self.send(mep, timeout)
        while True:
            try:
                _wait(self._socket, None if end is None else max(0.0, end - time.monotonic()))
            except TimeoutError:
                self.cancel(number)
                raise TimeoutError(f"no answer in {timeout} s") from None
            try:
                answer = self._next_answer()
            except RequestRefusedError as refused:
                if refused.request in (0, number):
                    raise
                continue
            if answer.id == number:
                return answer

    def send(self, mep: Buffer, timeout: float | None = None) -> int:
        """Send a request; returns its id. timeout: seconds that it may wait here for a connection, and in the node.

        Raises TimeoutError, also if the node was busy a moment ago and the pause after that is longer.
        """
        number, parts = self._messages.request(mep, timeout)
        pause = self._pace.wait()
        if timeout is not None and pause > timeout:
            time.sleep(timeout)
            raise TimeoutError(f"the node is busy: no request leaves in {timeout} s")
        if pause:
            time.sleep(pause)
        try:
            # Nearly always there is room, and a poll would take longer than the send.
            self._socket.send_multipart(parts, zmq.NOBLOCK)
        except zmq.Again:
            if not self._socket.poll(None if timeout is None else round((timeout - pause) * 1e3), zmq.POLLOUT):
                raise TimeoutError(f"no connection to a node in {timeout} s") from None
            self._socket.send_multipart(parts)
        self._pace.sent()
        return number

    def receive(self, timeout: float | None = None) -> Answer:
        """The next answer to any request. Raises as `ask`; after a TimeoutError the requests still wait."""
        _wait(self._socket, timeout)
        return self._next_answer()

    def _next_answer(self) -> Answer:
        message = self._socket.recv()
        try:
            answer = answer_in(message)
        except (RequestRefusedError, ProtocolError) as error:
            self._pace.ended(error)
            raise
        self._pace.ended()
        return answer

    def cancel(self, number: int) -> None:
        """Drop a request that may still wait; a dropped request has no answer."""
        self._pace.ended()
        # Without a connection there is no request to drop.
        with contextlib.suppress(zmq.Again):
            self._socket.send(self._messages.cancel(number), zmq.NOBLOCK)

    def close(self) -> None:
        """Close the connection."""
        self._socket.close()

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_error: object) -> None:
        self.close()


def _wait(socket: zmq.Socket[bytes], timeout: float | None) -> None:
    """Return when a message can be received; without a timeout at once, because the receive waits, too."""
    if timeout is not None and not socket.poll(round(timeout * 1e3)):
        raise TimeoutError(f"no message in {timeout} s")
