"""The table of the run control: every state with every command and internal trigger."""

import itertools

import pytest

from hltnode.daemon.run_control.state_machine import (
    TRANSITIONS,
    IllegalTransitionError,
    InternalTrigger,
    RunStateMachine,
    legal_commands,
    next_state,
)
from hltnode.protocol.transport.run_control_messages import CommandName, RunState

S, C, T = RunState, CommandName, InternalTrigger

STEPS = {
    (S.IDLE, C.CONFIGURE): S.CONFIGURED,
    (S.CONFIGURED, T.WARMED_UP): S.READY,
    (S.READY, C.START): S.RUNNING,
    (S.RUNNING, C.PAUSE): S.PAUSED,
    (S.RUNNING, C.STOP): S.DRAINING,
    (S.PAUSED, C.RESUME): S.RUNNING,
    (S.PAUSED, C.STOP): S.DRAINING,
    (S.DRAINING, T.DRAINED): S.READY,
}


@pytest.mark.parametrize(("state", "trigger"), list(itertools.product(RunState, [*CommandName, *InternalTrigger])))
def test_each_state_allows_exactly_its_steps(state: RunState, trigger: CommandName | InternalTrigger) -> None:
    if trigger in (C.STATUS, C.RELOAD) or (trigger is C.CLOSE and state in (S.READY, S.RUNNING, S.PAUSED)):
        assert next_state(state, trigger) is state
    elif trigger is T.FAILED:
        assert next_state(state, trigger) is S.ERROR
    elif (state, trigger) in STEPS:
        assert next_state(state, trigger) is STEPS[state, trigger]
    else:
        with pytest.raises(IllegalTransitionError) as caught:
            next_state(state, trigger)
        assert trigger in str(caught.value)
        assert state in str(caught.value)


def test_nothing_leads_out_of_error() -> None:
    assert {TRANSITIONS[S.ERROR, trigger] for state, trigger in TRANSITIONS if state is S.ERROR} == {S.ERROR}


def test_legal_commands_are_named() -> None:
    assert legal_commands(S.READY) == [C.START, C.CLOSE, C.STATUS, C.RELOAD]


def test_the_machine_goes_where_the_table_leads_and_stays_where_a_command_is_not_legal() -> None:
    machine = RunStateMachine()
    states = [machine.state, machine.apply(C.CONFIGURE), machine.state]
    with pytest.raises(IllegalTransitionError):
        machine.apply(C.START)
    states += [machine.state, machine.apply(T.WARMED_UP), machine.apply(T.FAILED), machine.state]
    assert states == [S.IDLE, S.CONFIGURED, S.CONFIGURED, S.CONFIGURED, S.READY, S.ERROR, S.ERROR]
