"""Collects messages of a ROUTER socket part by part: a message of a million parts must not fill the memory."""

from collections.abc import Sequence
from typing import NamedTuple

import zmq

from hltnode.daemon.security.received_input import ReceivedInput

# No defect of a peer makes more parts of a message than this; its connection ends.
MAX_PARTS = 64


class CollectedMessage(NamedTuple):
    """The first parts of a message, the first one being the identity of its sender; the number of all parts, and the
    bytes of those after the identity."""

    parts: Sequence[zmq.Frame]
    n_parts: int
    n_bytes: int


class MessageParts:
    """Counts each message for its connection, and keeps its first `most` parts."""

    def __init__(self, received: ReceivedInput, most: int) -> None:
        self._received = received
        self._most = most
        self._parts: list[zmq.Frame] = []
        self._n_parts = 0
        self._n_bytes = 0

    def add(self, part: zmq.Frame) -> CollectedMessage | None:
        """Add a part; the message if it is whole and its connection was not refused."""
        if self._n_parts < self._most:
            self._parts.append(part)
        if self._n_parts > 0:
            self._n_bytes += len(part)
        self._n_parts += 1
        if self._n_parts == MAX_PARTS + 1:
            # Now: the other parts take a while, and the next connections of this peer send as many.
            self._received.report(part)
        if part.more:
            return None
        message = CollectedMessage(self._parts, self._n_parts, self._n_bytes)
        self._parts, self._n_parts, self._n_bytes = [], 0, 0
        return message if self._received.take(part, message.n_bytes, message.n_parts - 1) else None
