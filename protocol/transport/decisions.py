"""The decision message: what the node publishes for each MEP, in msgpack."""

from __future__ import annotations

from hltnode.protocol.buffers import Buffer
from hltnode.protocol.transport.messages import U16, U32, U64, Message, MessageCodec

DECISION_VERSION = 1


class MepDecision(Message, frozen=True, tag="decision"):
    """The decisions on the events of one MEP.

    `seq` counts the messages of a node's session; `first_event` is the id of event 0; `close_reason` says why the MEP
    was built when it was, and `missing_sources` (u16) what it lacked.  `accepted` is a bitmap (event i is bit i % 8 of
    byte i // 8); `lines` holds a u64 and `flags` a u32 per event, little-endian.
    """

    node: str
    run: U32
    mep: U64
    seq: U64
    first_event: U64
    n_events: U16
    tck: U32
    close_reason: str
    missing_sources: tuple[U16, ...]
    accepted: bytes
    lines: bytes
    flags: bytes

    def check(self) -> None:
        n = self.n_events
        for name, found, size in (
            ("accepted", self.accepted, (n + 7) // 8),
            ("lines", self.lines, 8 * n),
            ("flags", self.flags, 4 * n),
        ):
            if len(found) != size:
                raise ValueError(f"{size} bytes expected for {n} events, {len(found)} found - at `$.{name}`")


_CODEC: MessageCodec[MepDecision] = MessageCodec(MepDecision, what="decision message", version=DECISION_VERSION)


def encode_decision(decision: MepDecision) -> bytes:
    """The message as msgpack.  Raises MessageError for one that decode_decision would refuse."""
    return _CODEC.encode(decision)


def decode_decision(raw: Buffer) -> MepDecision:
    """The decision in `raw`.  Raises MessageError for anything that is not exactly a decision of this version."""
    return _CODEC.decode(raw)
