"""Shared parts of the clients of the request socket of a node (`requests.endpoint`)."""

import time
from collections.abc import Callable
from itertools import count

import zmq

from hltnode.client.consumers import AnySocket, connect
from hltnode.client.keys import ClientKeys
from hltnode.protocol.buffers import Buffer
from hltnode.protocol.transport.requests import (
    MAX_ANSWER_SIZE,
    Answer,
    Cancel,
    Refusal,
    Request,
    RequestRefusal,
    decode_answer,
    encode_request,
)

BUSY_PAUSE_SECONDS = 0.02
"""A node answers 64 refusals `busy` a second of each client, and ends the connection of one that goes on faster."""
MOST_AT_ONCE = 64
"""Requests that leave without a pause, before the node has told whether it has room: as many as a node keeps answers
for a client that is slow to read them."""


class RequestRefusedError(Exception):
    """The node refused a request. request: its id. reason: why; after `busy` and `expired` a client may ask again."""

    def __init__(self, refusal: Refusal) -> None:
        super().__init__(f"request {refusal.id} was refused: {refusal.reason}: {refusal.text}")
        self.request = refusal.id
        self.reason: RequestRefusal = refusal.reason
        self.text = refusal.text


class RequestMessages:
    """Numbers the requests of one connection, and encodes them."""

    def __init__(self) -> None:
        self._numbers = count(1)

    def request(self, mep: Buffer, timeout: float | None) -> tuple[int, tuple[bytes, Buffer]]:
        """The id and the parts of a request. timeout: seconds that it may wait in the node; None: as the node likes."""
        number = next(self._numbers)
        timeout_ms = 0 if timeout is None else max(1, round(timeout * 1e3))
        return number, (encode_request(Request(number, min(timeout_ms, 0xFFFF_FFFF))), mep)

    @staticmethod
    def cancel(number: int) -> bytes:
        """The message that drops a request."""
        return encode_request(Cancel(number))


class RequestPace:
    """Tells when the next request may leave, so that a busy node does not refuse request after request.

    MOST_AT_ONCE requests may be on their way, after a refusal `busy` as many as then, and one more every
    BUSY_PAUSE_SECONDS.
    """

    def __init__(self, clock: Callable[[], float] = time.monotonic) -> None:
        self._clock = clock
        self._on_way = 0
        self._most = MOST_AT_ONCE
        self._next = 0.0
        """When one more than `_most` may leave."""

    def wait(self) -> float:
        """Seconds until the next request may leave; 0: now."""
        return max(0.0, self._next - self._clock()) if self._is_full() else 0.0

    def sent(self) -> None:
        """A request leaves."""
        if self._is_full():
            self._most = self._on_way + 1
            self._next = self._clock() + BUSY_PAUSE_SECONDS
        self._on_way += 1

    def ended(self, error: BaseException | None = None) -> None:
        """A request has its answer, was refused or was given up."""
        self._on_way = max(0, self._on_way - 1)
        if isinstance(error, RequestRefusedError) and error.reason is RequestRefusal.BUSY:
            self._most = min(self._most, self._on_way)
            self._next = self._clock() + BUSY_PAUSE_SECONDS

    def _is_full(self) -> bool:
        return self._on_way >= self._most


def answer_in(message: Buffer) -> Answer:
    """The answer in a message. Raises RequestRefusedError, and MessageError for a message of another version."""
    found = decode_answer(message)
    if isinstance(found, Refusal):
        raise RequestRefusedError(found)
    return found


def connect_requests(socket: AnySocket, endpoint: str, keys: ClientKeys | None) -> AnySocket:
    """Connect a DEALER socket to the request socket of a node."""
    socket.setsockopt(zmq.MAXMSGSIZE, MAX_ANSWER_SIZE)
    # Requests to an absent node wait in the program, which may give up, not in a queue.
    socket.setsockopt(zmq.IMMEDIATE, 1)
    return connect(socket, endpoint, keys)
