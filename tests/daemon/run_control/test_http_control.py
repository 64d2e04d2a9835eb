"""Commands over HTTP: authentication, allowed commands, and counted refusals."""

from collections.abc import Callable
from http import HTTPStatus

import pytest

from hltnode.daemon.common.vocabulary import LoginFailure
from hltnode.daemon.monitoring.http_server import RefusedError, Request
from hltnode.daemon.run_control.controller import CommandResult
from hltnode.daemon.run_control.http_control import HttpControl
from hltnode.protocol.transport.run_control_messages import CommandName, RunState

TOKEN = b"0123456789abcdef0123"


class Desk:
    """Records accepted commands and refused clients."""

    def __init__(self, token: bytes | None = TOKEN) -> None:
        self.commands: list[tuple[CommandName, int | None]] = []
        self.failures: list[LoginFailure] = []
        self.ok = True
        self.control = HttpControl(lambda: token, self.execute, self.failures.append)

    def execute(self, name: CommandName, run: int | None) -> CommandResult:
        self.commands.append((name, run))
        return CommandResult(self.ok, RunState.RUNNING, "text")

    def post(
        self, path: str = "/control/start", authorization: bytes | None = b"Bearer " + TOKEN, body: bytes = b""
    ) -> HTTPStatus:
        fields = {} if authorization is None else {b"authorization": authorization}
        try:
            return self.control.answer(Request("POST", path, fields, body)).status
        except RefusedError as refused:
            return refused.response.status


def test_with_the_token_each_command_is_obeyed() -> None:
    desk = Desk()
    for name in CommandName:
        assert desk.post(f"/control/{name}") == 200
    assert desk.post(body=b'{"run": 7}', authorization=b"bearer  " + TOKEN) == 200
    assert desk.commands == [*((name, None) for name in CommandName), (CommandName.START, 7)]
    assert not desk.failures


def test_a_command_refused_by_the_node_is_409() -> None:
    desk = Desk()
    desk.ok = False
    assert desk.post() == 409


@pytest.mark.parametrize(
    ("authorization", "failure"),
    [
        (None, LoginFailure.NO_TOKEN),
        (b"", LoginFailure.NO_TOKEN),
        (b"Basic " + TOKEN, LoginFailure.NO_TOKEN),
        (TOKEN, LoginFailure.NO_TOKEN),
        (b"Bearer ", LoginFailure.WRONG_TOKEN),
        (b"Bearer " + TOKEN[:-1], LoginFailure.WRONG_TOKEN),
        (b"Bearer " + TOKEN + b"4", LoginFailure.WRONG_TOKEN),
        (b"Bearer " + TOKEN.upper(), LoginFailure.WRONG_TOKEN),
        (b"Bearer \xff\xfe", LoginFailure.WRONG_TOKEN),
    ],
)
def test_without_the_right_token_nothing_is_obeyed(authorization: bytes | None, failure: LoginFailure) -> None:
    desk = Desk()
    assert desk.post(authorization=authorization) == 401
    assert desk.commands == []
    assert desk.failures == [failure]


def test_a_node_without_token_takes_no_commands_at_all() -> None:
    desk = Desk(token=None)
    assert desk.post() == 403
    assert desk.commands == []
    assert desk.failures == [LoginFailure.COMMANDS_OFF]


@pytest.mark.parametrize(
    "path", ["/control/", "/control/reboot", "/control/start/", "/control/../start", "/control/START"]
)
def test_an_unknown_command_is_404(path: str) -> None:
    desk = Desk()
    assert desk.post(path) == 404
    assert desk.commands == []


@pytest.mark.parametrize(
    "body",
    [b"run", b"[]", b"7", b'"x"', b'{"run": "7"}', b'{"run": -1}', b'{"run": 0}', b'{"run": 4294967296}',
     b'{"run": true}', b'{"run": 1.5}', b'{"walk": 7}', b"\xff", b"[" * 1000, b'{"run": ' + b"9" * 900 + b"}"],
)  # fmt: skip
def test_a_body_that_is_no_run_number_is_400(body: bytes) -> None:
    desk = Desk()
    assert desk.post(body=body) == 400
    assert desk.commands == []


def test_a_body_without_a_run_is_a_start_without_one() -> None:
    desk = Desk()
    answers: list[Callable[[], HTTPStatus]] = [lambda: desk.post(body=b"{}"), lambda: desk.post(body=b'{"run": null}')]
    assert [answer() for answer in answers] == [200, 200]
    assert desk.commands == [(CommandName.START, None)] * 2
