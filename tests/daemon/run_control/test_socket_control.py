"""Commands over the control socket: only operators, and answers that fit their message."""

from typing import cast

from hltnode.daemon.common.peer import Peer
from hltnode.daemon.common.vocabulary import Outcome
from hltnode.daemon.monitoring.operation_counters import OperationCounters
from hltnode.daemon.run_control.controller import CommandResult, RunController
from hltnode.daemon.run_control.socket_control import SocketControl
from hltnode.protocol.transport.control_messages import decode_message, encode_message
from hltnode.protocol.transport.run_control_messages import Command, CommandName, RunState

PEER = Peer("127.0.0.1", "")


class RecordingController:
    """Carries out nothing, with an answer of one's choice."""

    state = RunState.READY

    def __init__(self, text: str) -> None:
        self.commands: list[tuple[CommandName, int | None]] = []
        self._text = text

    def execute(self, name: CommandName, run: int | None = None, origin: str = "") -> CommandResult:
        self.commands.append((name, run))
        self.origin = origin
        return CommandResult(True, RunState.RUNNING, self._text)


def answer(controller: RecordingController, counters: OperationCounters, *, operator: bool) -> tuple[bool, str, str]:
    control = SocketControl(cast(RunController, controller), lambda _peer: operator, counters)
    reply = control.answer(PEER, Command(5, CommandName.START, 7))
    assert decode_message(encode_message(reply)) == reply
    assert reply.request == 5
    return reply.ok, reply.state, reply.text


def test_the_command_of_an_operator_is_carried_out_and_answered_with_the_state_after_it() -> None:
    controller = RecordingController("takes run 7")
    assert answer(controller, OperationCounters(), operator=True) == (True, "running", "takes run 7")
    assert controller.commands == [(CommandName.START, 7)]
    assert controller.origin == f"control {PEER.address}"


def test_the_command_of_another_peer_is_refused_and_counted() -> None:
    controller, counters = RecordingController(""), OperationCounters()
    ok, state, text = answer(controller, counters, operator=False)
    assert (ok, state) == (False, "ready")
    assert "not an operator" in text
    assert not controller.commands
    assert counters.commands[CommandName.START, Outcome.REFUSED] == 1


def test_a_text_that_is_too_long_is_cut_to_whole_characters() -> None:
    ok, _, text = answer(RecordingController("µ" * 100_000), OperationCounters(), operator=True)
    assert ok
    assert set(text) == {"µ"}
