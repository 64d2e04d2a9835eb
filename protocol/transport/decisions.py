"""The decision message: what the node publishes for each MEP, in msgpack (docs/formats/decision-message.md).

One message holds the decisions of a whole MEP, whatever the number of lines: `max_events_of_decision` says how many
events that may be, and a node takes no MEPs with more.
"""

from __future__ import annotations

from dataclasses import dataclass, fields

from hltnode.protocol.buffers import Buffer
from hltnode.protocol.errors import MessageError, RejectReason
from hltnode.protocol.transport.messages import MessageFields, pack_message

DECISION_VERSION = 2
# 65,535 events, the most that a MEP can have, fit with up to 1984 lines; 8,152 events with the most lines that a
# decision report holds, 16,378.
MAX_DECISION_SIZE = 16 << 20
# Bytes kept for all fields but `accepted`, `lines` and `flags`: two texts of 4096 bytes, a list of 4096 sources at 3
# bytes each, and the names of the fields take 21 kB.
_ENVELOPE_SIZE = 32 << 10
_MAX_EVENTS = 0xFFFF
# The message itself and the list of missing sources.
_CONTAINERS = 2
_WHAT = "decision message"
_CHANGE = "since version 2 a message says its n_lines and has ceil(n_lines / 32) words of 32 bits per event in lines"


@dataclass(frozen=True, slots=True)
class MepDecision:
    """The decisions on the events of one MEP.

    `seq` counts the messages of a node's session; `first_event` is the id of event 0; `close_reason` says why the MEP
    was built when it was, and `missing_sources` (u16) what it lacked.  `accepted` is a bitmap (event i is bit i % 8 of
    byte i // 8).  `lines` holds ceil(n_lines / 32) words (u32, little-endian) per event, one event after the other:
    the decision of line i is bit i % 32 of word i // 32, and bits from n_lines on are 0.  `flags` holds a u32 per
    event, little-endian.
    """

    node: str
    run: int
    mep: int
    seq: int
    first_event: int
    n_events: int
    n_lines: int
    tck: int
    close_reason: str
    missing_sources: tuple[int, ...]
    accepted: bytes
    lines: bytes
    flags: bytes


def max_events_of_decision(n_lines: int) -> int:
    """The most events of one MEP whose decisions on `n_lines` lines always fit in one message."""
    bytes_of_eight = 1 + 8 * (_line_bytes(n_lines) + 4)
    return min(_MAX_EVENTS, 8 * ((MAX_DECISION_SIZE - _ENVELOPE_SIZE) // bytes_of_eight))


def _line_bytes(n_lines: int) -> int:
    """Bytes of the line decisions of one event."""
    return 4 * -(-n_lines // 32)


def encode_decision(decision: MepDecision) -> bytes:
    """The message as msgpack.  Raises MessageError for one that decode_decision would refuse."""
    values = {field.name: getattr(decision, field.name) for field in fields(decision)}
    packed = pack_message(
        {"type": "decision", **values}, what=_WHAT, version=DECISION_VERSION, max_size=MAX_DECISION_SIZE
    )
    decode_decision(packed)
    return packed


def decode_decision(raw: Buffer) -> MepDecision:
    """The decision in `raw`.  Raises MessageError for anything that is not exactly a decision of this version."""
    try:
        take = MessageFields(
            raw, what=_WHAT, version=DECISION_VERSION, max_size=MAX_DECISION_SIZE, max_containers=_CONTAINERS
        )
    except MessageError as error:
        if error.reason is not RejectReason.BAD_VERSION:
            raise
        raise MessageError(error.reason, f"{error.message}; {_CHANGE}") from None
    type_name = take.text("type")
    if type_name != "decision":
        raise MessageError(RejectReason.MALFORMED, f"{_WHAT}: unknown type {type_name[:80]!r}")
    n_events = take.uint("n_events", 16)
    n_lines = take.uint("n_lines", 16)
    decision = MepDecision(
        node=take.text("node"),
        run=take.uint("run", 32),
        mep=take.uint("mep", 64),
        seq=take.uint("seq", 64),
        first_event=take.uint("first_event", 64),
        n_events=n_events,
        n_lines=n_lines,
        tck=take.uint("tck", 32),
        close_reason=take.text("close_reason"),
        missing_sources=take.uints("missing_sources", 16),
        accepted=take.binary("accepted", (n_events + 7) // 8),
        lines=take.binary("lines", n_events * _line_bytes(n_lines)),
        flags=take.binary("flags", 4 * n_events),
    )
    take.finish()
    return decision
