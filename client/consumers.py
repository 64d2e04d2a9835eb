"""Shared parts of the consumers of a node: sockets, message types and the count of missed messages."""

from dataclasses import dataclass, field
from typing import Any, Generic, Self, TypeVar

import zmq

from hltnode.client.keys import ClientKeys
from hltnode.protocol.errors import MessageError, RejectReason
from hltnode.protocol.raw_data.bank_types import BankType
from hltnode.protocol.raw_data.mdf import iter_records
from hltnode.protocol.raw_data.raw_bank import RawBank
from hltnode.protocol.raw_data.reports import decode_dec_reports
from hltnode.protocol.transport.decisions import MAX_DECISION_SIZE, SHADOW_TOPIC, MepDecision, decode_decisions
from hltnode.protocol.transport.endpoints import is_ipv6
from hltnode.protocol.transport.event_message import ACCEPTED, ERROR, EventHeader, decode_event_header

# Size of the receive queue of this process. Beyond it, messages wait in the node, which applies its policy.
QUEUE = 1000

AnySocket = TypeVar("AnySocket", bound=zmq.Socket[Any])


class GapCounter:
    """Counts missed messages by gaps in the sequence numbers; each session of the node starts at 0."""

    def __init__(self) -> None:
        self._next: int | None = None
        self.missed = 0

    def came(self, sequence: int) -> None:
        """Count a received message."""
        if self._next is not None and sequence > self._next:
            self.missed += sequence - self._next
        self._next = sequence + 1


@dataclass(frozen=True, slots=True)
class ReceivedEvent:
    """An event that a node kept: `stream` is b"A" for accepted events, b"E" for the error stream."""

    stream: bytes
    run: int
    sequence: int
    record: bytes = field(repr=False)
    """The event as an MDF record."""

    def fired(self) -> tuple[int, ...]:
        """Numbers of the lines that selected the event, from 0; empty for an event of the error stream.

        Raises MdfError, BankError, ReportError for a damaged event.
        """
        reports = [decode_dec_reports(bank) for bank in self.banks() if bank.type == BankType.HLT_DEC_REPORTS]
        return tuple(line.decision_id - 1 for report in reports for line in report.lines if line.decision)

    def banks(self) -> list[RawBank]:
        """The raw banks, including the trigger reports. Raises MdfError, BankError."""
        return next(iter_records(self.record)).banks()


class Consumer(Generic[AnySocket]):
    """A connection to an output socket of a node. Use as context manager."""

    def __init__(self, socket: AnySocket) -> None:
        self._socket = socket
        self._gaps = GapCounter()

    @property
    def missed(self) -> int:
        """Messages that did not arrive here: this consumer was too slow, or the node's socket is of kind `push`, which
        sends each message to one of several consumers."""
        return self._gaps.missed

    def close(self) -> None:
        """Close the connection."""
        self._socket.close()

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_error: object) -> None:
        self.close()


def event_of(parts: list[bytes]) -> ReceivedEvent:
    """The event of a message. Raises MessageError."""
    if len(parts) != 2:
        raise MessageError(RejectReason.MALFORMED, f"event message: 2 parts expected, {len(parts)} received")
    header: EventHeader = decode_event_header(parts[0])
    return ReceivedEvent(header.stream, header.run, header.sequence, parts[1])


def decisions_of(parts: list[bytes], *, shadow: bool) -> list[MepDecision]:
    """The decisions of a message, of a shadow node or of a productive one. Raises MessageError."""
    if len(parts) != 1 + shadow:
        found = "a shadow node" if len(parts) == 2 else "no shadow node"
        text = f"decision message: {1 + shadow} parts expected, {len(parts)} received: the sender is {found}"
        raise MessageError(RejectReason.MALFORMED, text)
    return decode_decisions(parts[-1])


def subscribe_decisions(
    socket: AnySocket, endpoint: str, keys: ClientKeys | None, *, shadow: bool = False
) -> AnySocket:
    """Connect a SUB socket to the decisions of a node, which is a shadow or not."""
    socket.setsockopt(zmq.MAXMSGSIZE, MAX_DECISION_SIZE)
    socket.setsockopt(zmq.SUBSCRIBE, SHADOW_TOPIC if shadow else b"")
    return connect(socket, endpoint, keys)


def receive_events(socket: AnySocket, endpoint: str, keys: ClientKeys | None) -> AnySocket:
    """Connect a PULL or SUB socket to the kept events of a node."""
    if socket.type == zmq.SUB:
        for stream in (ACCEPTED, ERROR):
            socket.setsockopt(zmq.SUBSCRIBE, stream)
    return connect(socket, endpoint, keys)


def connect(socket: AnySocket, endpoint: str, keys: ClientKeys | None) -> AnySocket:
    """Connect a socket that waits for nothing when it is closed."""
    socket.setsockopt(zmq.LINGER, 0)
    socket.setsockopt(zmq.IPV6, is_ipv6(endpoint))
    socket.setsockopt(zmq.RCVHWM, QUEUE)
    if keys is not None:
        keys.apply(socket)
    socket.connect(endpoint)
    return socket
