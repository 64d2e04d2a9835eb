"""Run control as a table: the legal commands of each state, and the state after each (no I/O, no clock).

IDLE -> CONFIGURED -> READY -> RUNNING <-> PAUSED -> DRAINING -> READY, and ERROR from all. Commands come from
operators, internal triggers from the node itself. `controller` carries out the effects on sockets and back end.
"""

from enum import StrEnum, unique

from hltnode.protocol.transport.run_control_messages import CommandName, RunState


@unique
class InternalTrigger(StrEnum):
    """Triggers that change the state without a command."""

    WARMED_UP = "warmed_up"
    DRAINED = "drained"
    FAILED = "failed"


class IllegalTransitionError(ValueError):
    """The state does not allow the command; the message names the legal commands."""


# Commands that do not change the state.
_ANYWHERE = frozenset({CommandName.STATUS, CommandName.RELOAD})

TRANSITIONS: dict[tuple[RunState, CommandName | InternalTrigger], RunState] = {
    (RunState.IDLE, CommandName.CONFIGURE): RunState.CONFIGURED,
    (RunState.CONFIGURED, InternalTrigger.WARMED_UP): RunState.READY,
    (RunState.READY, CommandName.START): RunState.RUNNING,
    (RunState.RUNNING, CommandName.PAUSE): RunState.PAUSED,
    (RunState.PAUSED, CommandName.RESUME): RunState.RUNNING,
    (RunState.RUNNING, CommandName.STOP): RunState.DRAINING,
    (RunState.PAUSED, CommandName.STOP): RunState.DRAINING,
    (RunState.DRAINING, InternalTrigger.DRAINED): RunState.READY,
    # CLOSE ends a run that the node has or keeps; it does not change the state.
    **{(state, CommandName.CLOSE): state for state in (RunState.READY, RunState.RUNNING, RunState.PAUSED)},
    **{(state, InternalTrigger.FAILED): RunState.ERROR for state in RunState},
    **{(state, command): state for state in RunState for command in _ANYWHERE},
}


def next_state(state: RunState, trigger: CommandName | InternalTrigger) -> RunState:
    """The state that follows.

    Raises:
        IllegalTransitionError: the table has no such step.
    """
    try:
        return TRANSITIONS[state, trigger]
    except KeyError:
        raise IllegalTransitionError(
            f"{trigger} is not legal in state {state}; legal commands are {', '.join(legal_commands(state))}"
        ) from None


class RunStateMachine:
    """Owner of the state of one node."""

    def __init__(self) -> None:
        self._state = RunState.IDLE

    @property
    def state(self) -> RunState:
        """The current state."""
        return self._state

    def apply(self, trigger: CommandName | InternalTrigger) -> RunState:
        """Make the transition and return the new state. Raises IllegalTransitionError; the state then stays."""
        self._state = next_state(self._state, trigger)
        return self._state


def legal_commands(state: RunState) -> list[CommandName]:
    """The commands that are legal in this state."""
    return [command for command in CommandName if (state, command) in TRANSITIONS]
