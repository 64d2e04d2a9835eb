"""Control messages to the node (ROUTER) from feeders and operators (DEALER): msgpack maps with "v" and "type"."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, fields
from enum import StrEnum, unique
from typing import TypeAlias

from hltnode.protocol.buffers import Buffer
from hltnode.protocol.errors import MessageError, RejectReason
from hltnode.protocol.transport.messages import MessageFields, pack_message

CONTROL_VERSION = 1
_WHAT = "control message"


@dataclass(frozen=True, slots=True)
class Hello:
    """Feeder to node: who sends, and what.

    `session` is new for each start of the feeder process; `sources` are u16 source ids; `max_fragment_bytes` is the
    largest MFP that the feeder will send.
    """

    feeder: str
    session: str
    run: int
    sources: tuple[int, ...]
    first_mep: int
    events_per_mep: int
    max_fragment_bytes: int


@dataclass(frozen=True, slots=True)
class Welcome:
    """Node to feeder: accepted.  `session` is new for each start of the node; no MFP may exceed the given size."""

    node: str
    session: str
    run: int
    max_fragment_bytes: int


@dataclass(frozen=True, slots=True)
class Credit:
    """Node to feeder: so many MEPs may be unacknowledged at this node.  A level, so repeats and losses do no harm."""

    run: int
    meps: int


@dataclass(frozen=True, slots=True)
class Ack:
    """Node to feeder: the MEPs of these ranges (first and last included) are done and may be forgotten."""

    run: int
    meps: tuple[tuple[int, int], ...]


@dataclass(frozen=True, slots=True)
class Revoked:
    """Feeder to node: these MEPs were given to another node, take back what you have of them.

    Node to feeder: that is done for these.
    """

    run: int
    meps: tuple[tuple[int, int], ...]


@dataclass(frozen=True, slots=True)
class Nack:
    """Node to feeder: a fragment was refused, and whether sending it again helps."""

    run: int
    source: int
    mep: int
    reason: RejectReason
    resend: bool


@dataclass(frozen=True, slots=True)
class EndOfRun:
    """Feeder to node: nothing follows `last_mep`; None if the feeder sent nothing."""

    run: int
    last_mep: int | None


@dataclass(frozen=True, slots=True)
class Goodbye:
    """Either side: this connection ends by intent."""

    reason: str


@dataclass(frozen=True, slots=True)
class Error:
    """Either side: the last message was refused; `reason` is a short word, `text` is for people."""

    reason: str
    text: str


@unique
class RunState(StrEnum):
    """Where a node is in its run control; a wire value and a metric label."""

    IDLE = "idle"
    CONFIGURED = "configured"
    READY = "ready"
    RUNNING = "running"
    PAUSED = "paused"
    DRAINING = "draining"
    ERROR = "error"


@unique
class CommandName(StrEnum):
    """What an operator may ask of a node."""

    CONFIGURE = "configure"
    START = "start"
    PAUSE = "pause"
    RESUME = "resume"
    STOP = "stop"
    STATUS = "status"
    RELOAD = "reload"


@dataclass(frozen=True, slots=True)
class Command:
    """Operator to node.  `request` comes back in the reply; `run` is for start only: the run to take, or None."""

    request: int
    command: CommandName
    run: int | None = None


@dataclass(frozen=True, slots=True)
class Reply:
    """Node to operator: whether the command was obeyed, the state after it, and a text (JSON for status)."""

    request: int
    ok: bool
    state: RunState
    text: str


ControlMessage: TypeAlias = (
    Hello | Welcome | Credit | Ack | Revoked | Nack | EndOfRun | Goodbye | Error | Command | Reply
)


def _hello(take: MessageFields) -> Hello:
    return Hello(
        feeder=take.text("feeder"),
        session=take.text("session"),
        run=take.uint("run", 32),
        sources=take.uints("sources", 16),
        first_mep=take.uint("first_mep", 64),
        events_per_mep=take.uint("events_per_mep", 16),
        max_fragment_bytes=take.uint("max_fragment_bytes", 32),
    )


def _welcome(take: MessageFields) -> Welcome:
    return Welcome(
        node=take.text("node"),
        session=take.text("session"),
        run=take.uint("run", 32),
        max_fragment_bytes=take.uint("max_fragment_bytes", 32),
    )


def _credit(take: MessageFields) -> Credit:
    return Credit(run=take.uint("run", 32), meps=take.uint("meps", 32))


def _ack(take: MessageFields) -> Ack:
    return Ack(run=take.uint("run", 32), meps=take.ranges("meps", 64))


def _revoked(take: MessageFields) -> Revoked:
    return Revoked(run=take.uint("run", 32), meps=take.ranges("meps", 64))


def _nack(take: MessageFields) -> Nack:
    reason = take.text("reason")
    try:
        known_reason = RejectReason(reason)
    except ValueError:
        raise take.malformed(f"unknown reason {reason[:80]!r}") from None
    return Nack(
        run=take.uint("run", 32),
        source=take.uint("source", 16),
        mep=take.uint("mep", 64),
        reason=known_reason,
        resend=take.boolean("resend"),
    )


def _end_of_run(take: MessageFields) -> EndOfRun:
    return EndOfRun(run=take.uint("run", 32), last_mep=take.optional_uint("last_mep", 64))


def _goodbye(take: MessageFields) -> Goodbye:
    return Goodbye(reason=take.text("reason"))


def _error(take: MessageFields) -> Error:
    return Error(reason=take.text("reason"), text=take.text("text"))


def _command(take: MessageFields) -> Command:
    name = take.text("command")
    try:
        command = CommandName(name)
    except ValueError:
        raise take.malformed(f"unknown command {name[:80]!r}") from None
    return Command(request=take.uint("request", 32), command=command, run=take.optional_uint("run", 32))


def _reply(take: MessageFields) -> Reply:
    name = take.text("state")
    try:
        state = RunState(name)
    except ValueError:
        raise take.malformed(f"unknown state {name[:80]!r}") from None
    return Reply(request=take.uint("request", 32), ok=take.boolean("ok"), state=state, text=take.text("text"))


_READERS: dict[str, Callable[[MessageFields], ControlMessage]] = {
    "hello": _hello,
    "welcome": _welcome,
    "credit": _credit,
    "ack": _ack,
    "revoked": _revoked,
    "nack": _nack,
    "end_of_run": _end_of_run,
    "goodbye": _goodbye,
    "error": _error,
    "command": _command,
    "reply": _reply,
}
_TYPE_NAMES: dict[type[ControlMessage], str] = {
    Hello: "hello",
    Welcome: "welcome",
    Credit: "credit",
    Ack: "ack",
    Revoked: "revoked",
    Nack: "nack",
    EndOfRun: "end_of_run",
    Goodbye: "goodbye",
    Error: "error",
    Command: "command",
    Reply: "reply",
}


def encode_message(message: ControlMessage) -> bytes:
    """The message as msgpack.  Raises MessageError for a message that decode_message would refuse."""
    values = {field.name: getattr(message, field.name) for field in fields(message)}
    packed = pack_message({"type": _TYPE_NAMES[type(message)], **values}, what=_WHAT, version=CONTROL_VERSION)
    decode_message(packed)
    return packed


def decode_message(raw: Buffer) -> ControlMessage:
    """The message in `raw`.

    Raises MessageError for anything that is not exactly a known message of this version: unknown type, missing or
    unknown field, wrong type or range, over a limit.
    """
    take = MessageFields(raw, what=_WHAT, version=CONTROL_VERSION)
    type_name = take.text("type")
    reader = _READERS.get(type_name)
    if reader is None:
        raise MessageError(RejectReason.MALFORMED, f"{_WHAT}: unknown type {type_name[:80]!r}")
    message = reader(take)
    take.finish()
    return message
