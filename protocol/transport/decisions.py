"""The decision message: what the node publishes for each MEP, in msgpack."""

from __future__ import annotations

from dataclasses import dataclass, fields

from hltnode.protocol.buffers import Buffer
from hltnode.protocol.errors import MessageError, RejectReason
from hltnode.protocol.transport.messages import MessageFields, pack_message

DECISION_VERSION = 1
_WHAT = "decision message"


@dataclass(frozen=True, slots=True)
class MepDecision:
    """The decisions on the events of one MEP.

    `seq` counts the messages of a node's session; `first_event` is the id of event 0; `close_reason` says why the MEP
    was built when it was, and `missing_sources` (u16) what it lacked.  `accepted` is a bitmap (event i is bit i % 8 of
    byte i // 8); `lines` holds a u64 and `flags` a u32 per event, little-endian.
    """

    node: str
    run: int
    mep: int
    seq: int
    first_event: int
    n_events: int
    tck: int
    close_reason: str
    missing_sources: tuple[int, ...]
    accepted: bytes
    lines: bytes
    flags: bytes


def encode_decision(decision: MepDecision) -> bytes:
    """The message as msgpack.  Raises MessageError for one that decode_decision would refuse."""
    values = {field.name: getattr(decision, field.name) for field in fields(decision)}
    packed = pack_message({"type": "decision", **values}, what=_WHAT, version=DECISION_VERSION)
    decode_decision(packed)
    return packed


def decode_decision(raw: Buffer) -> MepDecision:
    """The decision in `raw`.  Raises MessageError for anything that is not exactly a decision of this version."""
    take = MessageFields(raw, what=_WHAT, version=DECISION_VERSION)
    type_name = take.text("type")
    if type_name != "decision":
        raise MessageError(RejectReason.MALFORMED, f"{_WHAT}: unknown type {type_name[:80]!r}")
    n_events = take.uint("n_events", 16)
    decision = MepDecision(
        node=take.text("node"),
        run=take.uint("run", 32),
        mep=take.uint("mep", 64),
        seq=take.uint("seq", 64),
        first_event=take.uint("first_event", 64),
        n_events=n_events,
        tck=take.uint("tck", 32),
        close_reason=take.text("close_reason"),
        missing_sources=take.uints("missing_sources", 16),
        accepted=take.binary("accepted", (n_events + 7) // 8),
        lines=take.binary("lines", 8 * n_events),
        flags=take.binary("flags", 4 * n_events),
    )
    take.finish()
    return decision
