"""Shared parts of the clients of the request socket of a node (`requests.endpoint`)."""

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
