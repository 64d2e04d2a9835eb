"""Messages between feeder and node: hello, credits, acknowledgements, refusals, revocations."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from itertools import islice
from typing import TypeVar

from hltnode.protocol.errors import RejectReason
from hltnode.protocol.transport.messages import (
    MAX_MEP_ID,
    MAX_RANGES,
    U16,
    U32,
    U64,
    Message,
    Name,
    Ranges,
    Remark,
    check_ranges,
)

# Maximum number of MEPs of one `Revoked` or `Returned`, above the number of slots of a node. The node checks each MEP.
MAX_REVOKED = 65_536


class Hello(Message, frozen=True, omit_defaults=True):
    """Feeder to node: the name of the feeder, and its data.

    `session` is new for each start of the feeder process; `sources` are u16 source ids; `max_fragment_bytes` is the
    largest MFP that the feeder will send.  Every MEP below `first_mep` is acknowledged to this feeder, by this node or
    another one: with `first_mep` above its last MEP it confirms the whole run. Only a feeder that `supervises` may
    revoke MEPs. `feeders` is the number of feeders that share the sources of the run, this one included: the run starts
    when all are connected; it is omitted if it is 1. `chain` is the name of the chain of the data: a node of another
    chain refuses the hello; without it a node of any chain accepts the feeder. `input` identifies the input of a
    replay: a node refuses another input for an unfinished run; it is omitted if the data cannot be sent again.
    """

    feeder: Name
    session: Name
    run: U32
    sources: tuple[U16, ...]
    first_mep: U64
    events_per_mep: U16
    max_fragment_bytes: U32
    supervises: bool
    feeders: U16 = 1
    chain: Name = ""
    input: Name = ""


class Welcome(Message, frozen=True):
    """Node to feeder: hello accepted. `session` is new for each start of the node; no MFP may exceed the given size.

    `token` is the permission to send: the node accepts only frames with it, of the sources in the hello.
    """

    node: Name
    session: Name
    run: U32
    max_fragment_bytes: U32
    token: U64


class Credit(Message, frozen=True):
    """Node to feeder: the limit of unacknowledged MEPs at this node. As a level, it may be repeated or lost."""

    run: U32
    meps: U32


class Ack(Message, frozen=True):
    """Node to feeder: the MEPs of these ranges (first and last included) are acknowledged; the feeder may free them."""

    run: U32
    meps: Ranges

    def check(self) -> None:
        check_ranges("meps", self.meps)


class Held(Message, frozen=True):
    """Node to feeder: the node has all fragments of this feeder for these MEPs (ranges, first and last included).

    The feeder need not repeat them to this `session` of the node, which will acknowledge the MEPs.
    """

    session: Name
    run: U32
    meps: Ranges

    def check(self) -> None:
        check_ranges("meps", self.meps)


class Revoked(Message, frozen=True):
    """MEPs that were assigned to another node (ranges, first and last included).

    Supervising feeder to node: discard fragments and results of these MEPs, and refuse their fragments from now on.
    Node to feeder: they are discarded.
    """

    run: U32
    meps: Ranges

    def check(self) -> None:
        _check_moved(self.meps)


class Returned(Message, frozen=True):
    """Revoked MEPs that are assigned to this node again (ranges, first and last included).

    Supervising feeder to node: accept their fragments again. Node to feeder: they are accepted.
    """

    run: U32
    meps: Ranges

    def check(self) -> None:
        _check_moved(self.meps)


class Nack(Message, frozen=True):
    """Node to feeder: a fragment was refused; `resend` tells whether to send it again."""

    run: U32
    source: U16
    mep: U64
    reason: RejectReason
    resend: bool


class Missed(Message, frozen=True):
    """Node to feeder: these MEPs (ranges, first and last included) were closed without a fragment of this source.

    It names one missing source of the feeder per MEP; more may be missing. It may be repeated.
    """

    run: U32
    source: U16
    meps: Ranges

    def check(self) -> None:
        check_ranges("meps", self.meps)


class EndOfRun(Message, frozen=True):
    """Feeder to node: `last_mep` was the last MEP; None if the feeder sent no MEP."""

    run: U32
    last_mep: U64 | None

    def check(self) -> None:
        if self.last_mep is not None and self.last_mep > MAX_MEP_ID:
            raise ValueError(f"MEP {self.last_mep}, at most {MAX_MEP_ID} - at `$.last_mep`")


class Goodbye(Message, frozen=True):
    """Either side: this connection is closed on purpose."""

    reason: Remark


class Error(Message, frozen=True):
    """Either side: the last message was refused; `reason` is a short word, `text` is for people."""

    reason: Name
    text: Remark


class RunClosed(Message, frozen=True):
    """Node to feeder: an operator closed the run; the node acknowledges no further MEPs of it."""

    run: U32


def _check_moved(meps: Ranges) -> None:
    check_ranges("meps", meps)
    total = sum(last - first + 1 for first, last in meps)
    if total > MAX_REVOKED:
        raise ValueError(f"{total} MEPs, at most {MAX_REVOKED} expected - at `$.meps`")


_Moved = TypeVar("_Moved", Revoked, Returned)


def split_ack(run: int, ranges: Iterable[tuple[int, int]]) -> Iterator[Ack]:
    """The acknowledgements for the ranges (first, last) of a run, as many as needed; none without ranges."""
    for of_message in _of_messages(ranges):
        yield Ack(run, of_message)


def split_held(session: str, run: int, ranges: Iterable[tuple[int, int]]) -> Iterator[Held]:
    """The `Held` messages for the ranges (first, last) of a run; none without ranges."""
    for of_message in _of_messages(ranges):
        yield Held(session, run, of_message)


def split_missed(run: int, source: int, ranges: Iterable[tuple[int, int]]) -> Iterator[Missed]:
    """The `Missed` messages for the ranges (first, last) of a source; none without ranges."""
    for of_message in _of_messages(ranges):
        yield Missed(run, source, of_message)


def _of_messages(ranges: Iterable[tuple[int, int]]) -> Iterator[Ranges]:
    rest = iter(ranges)
    while of_message := tuple(islice(rest, MAX_RANGES)):
        yield of_message


def split_moved(kind: type[_Moved], run: int, ranges: Iterable[tuple[int, int]]) -> Iterator[_Moved]:
    """The `Revoked` or `Returned` messages for the ranges (first, last) of a run; none without ranges."""
    of_message: list[tuple[int, int]] = []
    room = MAX_REVOKED
    for first, last in ranges:
        while first <= last:
            end = min(last, first + room - 1)
            of_message.append((first, end))
            room -= end - first + 1
            first = end + 1
            if not room or len(of_message) == MAX_RANGES:
                yield kind(run, tuple(of_message))
                of_message = []
                room = MAX_REVOKED
    if of_message:
        yield kind(run, tuple(of_message))
