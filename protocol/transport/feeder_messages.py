"""Messages between feeder and node: who sends, what may be sent, what was received."""

from __future__ import annotations

from hltnode.protocol.errors import RejectReason
from hltnode.protocol.transport.messages import U16, U32, U64, Message, Ranges, check_ranges


class Hello(Message, frozen=True):
    """Feeder to node: the name of the feeder, and what it sends.

    `session` is new for each start of the feeder process; `sources` are u16 source ids; `max_fragment_bytes` is the
    largest MFP that the feeder will send.
    """

    feeder: str
    session: str
    run: U32
    sources: tuple[U16, ...]
    first_mep: U64
    events_per_mep: U16
    max_fragment_bytes: U32


class Welcome(Message, frozen=True):
    """Node to feeder: accepted.  `session` is new for each start of the node; no MFP may exceed the given size."""

    node: str
    session: str
    run: U32
    max_fragment_bytes: U32


class Credit(Message, frozen=True):
    """Node to feeder: how many MEPs may be unacknowledged at this node.  A level, so repeats and losses do no harm."""

    run: U32
    meps: U32


class Ack(Message, frozen=True):
    """Node to feeder: the MEPs of these ranges (first and last included) are acknowledged; the feeder may free them."""

    run: U32
    meps: Ranges

    def check(self) -> None:
        check_ranges("meps", self.meps)


class Revoked(Message, frozen=True):
    """MEPs, by ranges with first and last included, that were assigned to another node.

    Feeder to node: discard the fragments and results of these.  Node to feeder: these have been discarded.
    """

    run: U32
    meps: Ranges

    def check(self) -> None:
        check_ranges("meps", self.meps)


class Nack(Message, frozen=True):
    """Node to feeder: a fragment was refused, and whether sending it again helps."""

    run: U32
    source: U16
    mep: U64
    reason: RejectReason
    resend: bool


class EndOfRun(Message, frozen=True):
    """Feeder to node: nothing follows `last_mep`; None if the feeder sent nothing."""

    run: U32
    last_mep: U64 | None


class Goodbye(Message, frozen=True):
    """Either side: this connection is closed on purpose."""

    reason: str


class Error(Message, frozen=True):
    """Either side: the last message was refused; `reason` is a short word, `text` is for people."""

    reason: str
    text: str
