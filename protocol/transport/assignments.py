"""Which node a MEP goes to, told by the supervising feeder (ROUTER) to the others (DEALER): msgpack maps."""

from __future__ import annotations

from dataclasses import dataclass, fields

from hltnode.protocol.buffers import Buffer
from hltnode.protocol.errors import MessageError, RejectReason
from hltnode.protocol.transport.messages import MAX_ITEMS, MessageFields, pack_message

ASSIGNMENTS_VERSION = 1
_WHAT = "assignment message"
# Entries of one answer; more are asked for again at once.
MAX_ENTRIES = MAX_ITEMS


@dataclass(frozen=True, slots=True)
class Follow:
    """Feeder to supervisor: tell me what follows `position` in the list of the supervisor's `session`.

    `nodes` are the data endpoints in the order of the feeder's command line, separated by blanks: assignments count
    them, so that supervisor and feeders have to agree.
    """

    feeder: str
    run: int
    nodes: str
    session: str
    position: int


@dataclass(frozen=True, slots=True)
class Assignments:
    """Supervisor to feeder: MEP `meps[i]` goes to node `nodes[i]`, a later entry for a MEP takes it from the former.

    `position` follows the last entry. A MEP below `next_mep` that was never named has been acknowledged. `error` is
    empty, or says why the feeder cannot be served.
    """

    session: str
    position: int
    next_mep: int
    meps: tuple[int, ...]
    nodes: tuple[int, ...]
    error: str


def encode_assignment_message(message: Follow | Assignments) -> bytes:
    """The message as msgpack. Raises MessageError for one that decode_assignment_message would refuse."""
    values = {field.name: getattr(message, field.name) for field in fields(message)}
    packed = pack_message({"type": type(message).__name__.lower(), **values}, what=_WHAT, version=ASSIGNMENTS_VERSION)
    decode_assignment_message(packed)
    return packed


def decode_assignment_message(raw: Buffer) -> Follow | Assignments:
    """The message in `raw`. Raises MessageError for anything that is not exactly a message of this version."""
    take = MessageFields(raw, what=_WHAT, version=ASSIGNMENTS_VERSION)
    type_name = take.text("type")
    message: Follow | Assignments
    if type_name == "follow":
        message = Follow(
            take.text("feeder"),
            take.uint("run", 32),
            take.text("nodes"),
            take.text("session"),
            take.uint("position", 64),
        )
    elif type_name == "assignments":
        message = Assignments(
            session=take.text("session"),
            position=take.uint("position", 64),
            next_mep=take.uint("next_mep", 64),
            meps=take.uints("meps", 64),
            nodes=take.uints("nodes", 16),
            error=take.text("error"),
        )
        if len(message.meps) != len(message.nodes):
            raise take.malformed(f"{len(message.meps)} MEPs with {len(message.nodes)} nodes")
    else:
        raise MessageError(RejectReason.MALFORMED, f"{_WHAT}: unknown type {type_name[:80]!r}")
    take.finish()
    return message
