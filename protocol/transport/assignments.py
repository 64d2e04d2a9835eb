"""Assignment of MEPs to nodes: the supervising feeder (ROUTER) answers other feeders (DEALER) with msgpack maps."""

from __future__ import annotations

from hltnode.protocol.buffers import Buffer
from hltnode.protocol.transport.messages import MAX_ITEMS, U16, U32, U64, Message, MessageCodec

ASSIGNMENTS_VERSION = 2
# Entries of one answer; the feeder requests further ones at once.
MAX_ENTRIES = MAX_ITEMS
# In place of a node: the MEP is acknowledged to the supervisor and goes to no other node.
ACKNOWLEDGED = 0xFFFF


class Follow(Message, frozen=True):
    """Feeder to supervisor: requests the entries after `position` in the list of the supervisor's `session`.

    `nodes` are the data endpoints in the order of the feeder's command line, separated by blanks. Assignments hold an
    index into this list, so supervisor and feeders must have the same list.
    """

    feeder: str
    run: U32
    nodes: str
    session: str
    position: U64


class Assignments(Message, frozen=True):
    """Supervisor to feeder: MEP `meps[i]` goes to node `nodes[i]`; a later entry for a MEP replaces an earlier one.

    `position` follows the last entry. A MEP below `next_mep` that was never named is acknowledged. With `everything`
    the list holds all MEPs that are assigned and not acknowledged, else the changes. `error` is empty, or the reason
    why the supervisor refuses the feeder.
    """

    session: str
    position: U64
    next_mep: U64
    meps: tuple[U64, ...]
    nodes: tuple[U16, ...]
    everything: bool
    error: str

    def check(self) -> None:
        if len(self.meps) != len(self.nodes):
            raise ValueError(f"{len(self.meps)} MEPs with {len(self.nodes)} nodes - at `$.nodes`")


_CODEC: MessageCodec[Follow | Assignments] = MessageCodec(
    Follow,
    Assignments,
    what="assignment message",
    version=ASSIGNMENTS_VERSION,
    change="since version 2 the supervisor says which MEPs are acknowledged",
)


def encode_assignment_message(message: Follow | Assignments) -> bytes:
    """The message as msgpack. Raises MessageError for one that decode_assignment_message would refuse."""
    return _CODEC.encode(message)


def decode_assignment_message(raw: Buffer) -> Follow | Assignments:
    """The message in `raw`. Raises MessageError for anything except a message of this version."""
    return _CODEC.decode(raw)
