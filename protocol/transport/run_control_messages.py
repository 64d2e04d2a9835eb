"""Messages between node and operator: commands, replies and run-control states."""

from __future__ import annotations

from enum import StrEnum, unique

from hltnode.protocol.transport.messages import U32, Message


@unique
class RunState(StrEnum):
    """State of the run control of a node; a wire value and a metric label."""

    IDLE = "idle"
    CONFIGURED = "configured"
    READY = "ready"
    RUNNING = "running"
    PAUSED = "paused"
    DRAINING = "draining"
    ERROR = "error"


@unique
class CommandName(StrEnum):
    """Commands of an operator to a node."""

    CONFIGURE = "configure"
    START = "start"
    PAUSE = "pause"
    RESUME = "resume"
    STOP = "stop"
    CLOSE = "close"
    STATUS = "status"
    RELOAD = "reload"


class Command(Message, frozen=True):
    """Operator to node. The reply repeats `request`; `run` is the run number for start and close, or None."""

    request: U32
    command: CommandName
    run: U32 | None


class Reply(Message, frozen=True):
    """Node to operator: the success of the command, the state after it, and a text (JSON for status)."""

    request: U32
    ok: bool
    state: RunState
    text: str
