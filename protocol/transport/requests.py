"""Messages of the request socket of a node (ROUTER) with its clients (DEALER), in msgpack.

A client sends a request and, in a second part, the data of its events: one MEP (docs/formats/mep.md) whose MFPs start
at multiples of 8 bytes. The node computes the events beside its run and answers with what it would decide. Such events
belong to no run: they are not written, not published and not counted as events of the node.

Format: docs/formats/request-messages.md.
"""

from __future__ import annotations

from enum import StrEnum, unique
from typing import TYPE_CHECKING, Annotated, TypeAlias, get_args

import msgspec

from hltnode.protocol.buffers import Buffer
from hltnode.protocol.transport.decisions import accepted_of, check_sizes, fired_of, flags_of
from hltnode.protocol.transport.messages import U16, U32, U64, Message, MessageCodec, Name, Remark
from hltnode.protocol.value_lists import ValueList, decode_blocks

if TYPE_CHECKING:
    import numpy as np
    from numpy.typing import NDArray

REQUEST_VERSION = 1
MFP_ALIGNMENT = 8
"""MFPs in the MEP of a request start at multiples of this number of bytes."""
MAX_REQUEST_HEADER = 8 << 10
"""Bytes of the first part of a request; a request has 40."""
MAX_EVENTS = 4096
"""Most events of a request."""
MAX_ANSWER_SIZE = 64 << 20
"""More than any answer: 16 MiB of lists, and 4,096 events with 16,378 lines and 2,000 collections."""
MAX_COLLECTIONS = 4096

_Names: TypeAlias = Annotated[tuple[str, ...], msgspec.Meta(max_length=MAX_COLLECTIONS)]


@unique
class RequestRefusal(StrEnum):
    """Why a request has no answer.

    malformed: the message cannot be read; bad_mep: its MEP cannot; too_large: more events, bytes or sources than the
    node takes in one request; busy: too many requests of this client, or of all, wait; expired: its time ended before
    its computation began; failed: the back end failed; stopping: the node ends.
    """

    MALFORMED = "malformed"
    BAD_MEP = "bad_mep"
    TOO_LARGE = "too_large"
    BUSY = "busy"
    EXPIRED = "expired"
    FAILED = "failed"
    STOPPING = "stopping"


class Request(Message, frozen=True):
    """Client to node: compute the events of the MEP in the next part.

    `id` is chosen by the client; the answer repeats it. `timeout_ms`: time from the arrival of the request until its
    computation begins, after which it is refused; 0: that of the node.
    """

    id: U64
    timeout_ms: U32


class Cancel(Message, frozen=True):
    """Client to node: drop the request if it still waits. A dropped request has no answer."""

    id: U64


class Answer(Message, frozen=True):
    """Node to client: the decisions on the events of a request.

    `accepted`, `lines` and `flags` are as in a decision message (docs/formats/decision-message.md). `counts` holds a
    u32, little-endian, of each event and collection, event by event; `lists` has the output lists of all events.
    """

    id: U64
    node: str
    chain: Name
    tck: U32
    n_events: U16
    n_lines: U16
    accepted: bytes
    lines: bytes
    flags: bytes
    collections: _Names
    counts: bytes
    lists: bytes

    def __repr__(self) -> str:
        accepted = int(self.accepted_events().sum())
        return f"<{self.node}: request {self.id}, {accepted} of {self.n_events} events accepted>"

    def accepted_events(self) -> NDArray[np.bool_]:
        """Whether each event is accepted, bool[n_events]."""
        return accepted_of(self.accepted, self.n_events)

    def fired(self) -> NDArray[np.bool_]:
        """Whether each line selects each event, bool[n_events, n_lines]."""
        return fired_of(self.lines, self.n_events, self.n_lines)

    def event_flags(self) -> NDArray[np.uint32]:
        """The flags of each event, u32[n_events]."""
        return flags_of(self.flags)

    def counted(self) -> dict[str, NDArray[np.uint32]]:
        """The number of objects of each collection in each event, u32[n_events], by the name of the collection."""
        import numpy as np  # an encoder needs no NumPy

        table = np.frombuffer(self.counts, "<u4").reshape(self.n_events, len(self.collections)).astype(np.uint32)
        return {name: table[:, column] for column, name in enumerate(self.collections)}

    def output_lists(self) -> dict[str, ValueList | None]:
        """The output lists of the events, by name; None for one that did not fit into the message.

        Raises ValueError for lists that cannot be read.
        """
        return decode_blocks(memoryview(self.lists), self.n_events)

    def check(self) -> None:
        check_sizes(self.n_events, self.n_lines, self.accepted, self.lines, self.flags)
        n_counts = self.n_events * len(self.collections)
        if len(self.counts) != 4 * n_counts:
            raise ValueError(
                f"{4 * n_counts} bytes expected for {n_counts} counts, {len(self.counts)} found - at `$.counts`"
            )


class Refusal(Message, frozen=True):
    """Node to client: the request has no answer. `id` is 0 for a message without readable id."""

    id: U64
    reason: RequestRefusal
    text: Remark


ToNode: TypeAlias = Request | Cancel
ToClient: TypeAlias = Answer | Refusal

_TO_NODE: MessageCodec[ToNode] = MessageCodec(
    *get_args(ToNode), what="request message", version=REQUEST_VERSION, max_size=MAX_REQUEST_HEADER, max_containers=1
)
_TO_CLIENT: MessageCodec[ToClient] = MessageCodec(
    *get_args(ToClient),
    what="answer message",
    version=REQUEST_VERSION,
    max_size=MAX_ANSWER_SIZE,
    # Containers: the message and the names of the collections.
    max_containers=2,
)


def encode_request(message: ToNode) -> bytes:
    """The message as msgpack. Raises MessageError for one that decode_request would refuse."""
    return _TO_NODE.encode(message)


def decode_request(raw: Buffer) -> ToNode:
    """The request or its end in `raw`. Raises MessageError for anything else."""
    return _TO_NODE.decode(raw)


def encode_answer(message: ToClient) -> bytes:
    """The message as msgpack. Raises MessageError for one that decode_answer would refuse."""
    return _TO_CLIENT.encode(message)


def pack_answer(answer: Answer) -> bytes:
    """The answer as msgpack, for fields that are in their ranges: only their sizes are checked.

    Raises MessageError for sizes that decode_answer would refuse.
    """
    return _TO_CLIENT.pack(answer)


def decode_answer(raw: Buffer) -> ToClient:
    """The answer or refusal in `raw`. Raises MessageError for anything else."""
    return _TO_CLIENT.decode(raw)
