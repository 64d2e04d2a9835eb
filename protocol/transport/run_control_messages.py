"""Messages between node and operator: commands, and the states that the replies carry."""

from __future__ import annotations

from enum import StrEnum, unique

from hltnode.protocol.transport.messages import U32, Message


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
    """The commands that an operator may send to a node."""

    CONFIGURE = "configure"
    START = "start"
    PAUSE = "pause"
    RESUME = "resume"
    STOP = "stop"
    CLOSE = "close"
    STATUS = "status"
    RELOAD = "reload"


class Command(Message, frozen=True):
    """Operator to node.  `request` is repeated in the reply; `run` is for start and close: the run number, or None."""

    request: U32
    command: CommandName
    run: U32 | None


class Reply(Message, frozen=True):
    """Node to operator: whether the command was executed, the state after it, and a text (JSON for status)."""

    request: U32
    ok: bool
    state: RunState
    text: str
