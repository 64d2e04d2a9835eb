"""Commands over HTTP: authentication, allowed commands, and counted refusals."""

from collections.abc import Callable
from http import HTTPStatus

import pytest

from hltnode.daemon.common.vocabulary import LoginFailure
from hltnode.daemon.monitoring.http_server import RefusedError, Request, Response
from hltnode.daemon.run_control.controller import CommandResult
from hltnode.daemon.run_control.http_control import (
    COMMANDS,
    COMMANDS_PER_SECOND,
    WRONG_TOKENS,
    WRONG_TOKENS_PER_SECOND,
    HttpControl,
)
from hltnode.protocol.transport.run_control_messages import CommandName, RunState

TOKEN = b"0123456789abcdef0123"


class Desk:
    """Records accepted commands and refused clients."""

    def __init__(self, token: bytes | None = TOKEN) -> None:
        self.commands: list[tuple[CommandName, int | None]] = []
        self.failures: list[LoginFailure] = []
        self.origins: list[str] = []
        self.refused: list[str] = []
        self.ok = True
        self.now_ns = 0
        self.answer: Response | None = None
        self.control = HttpControl(lambda: token, self.execute, self.login_failed, clock_ns=lambda: self.now_ns)

    def login_failed(self, failure: LoginFailure, address: str) -> None:
        self.failures.append(failure)
        self.refused.append(address)

    def execute(self, name: CommandName, run: int | None, origin: str) -> CommandResult:
        self.commands.append((name, run))
        self.origins.append(origin)
        return CommandResult(self.ok, RunState.RUNNING, "text")

    def post(
        self,
        path: str = "/control/start",
        authorization: bytes | None = b"Bearer " + TOKEN,
        body: bytes = b"",
        address: str = "10.0.0.1",
        site: bytes | None = None,
    ) -> HTTPStatus:
        fields = {} if authorization is None else {b"authorization": authorization}
        if site is not None:
            fields[b"sec-fetch-site"] = site
        try:
            return self.control.answer(Request("POST", path, fields, body, address)).status
        except RefusedError as refused:
            self.answer = refused.response
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


def test_the_address_of_a_client_is_given_to_the_log() -> None:
    desk = Desk()
    desk.post()
    desk.post(authorization=b"Bearer wrong", address="10.0.0.2")
    assert desk.origins == ["http 10.0.0.1"]
    assert desk.refused == ["10.0.0.2"]


@pytest.mark.parametrize("site", [b"cross-site", b"same-site", b"", b"same-origin, cross-site"])
def test_a_command_from_the_page_of_another_site_is_refused_even_with_the_token(site: bytes) -> None:
    desk = Desk()
    assert desk.post(site=site) == 403
    assert desk.commands == []
    assert desk.failures == [LoginFailure.FOREIGN_PAGE]


@pytest.mark.parametrize("site", [b"same-origin", b"none", None])
def test_a_command_from_the_status_page_or_without_a_browser_is_obeyed(site: bytes | None) -> None:
    assert Desk().post(site=site) == 200


def test_an_address_with_too_many_wrong_tokens_must_wait_and_others_need_not() -> None:
    desk = Desk()
    for _ in range(WRONG_TOKENS):
        assert desk.post(authorization=b"Bearer guess") == 401
    # Also with the right token: otherwise the answer would tell a guesser which one is right.
    assert desk.post() == desk.post(authorization=b"Bearer guess") == 429
    assert desk.failures[WRONG_TOKENS:] == [LoginFailure.TOO_MANY] * 2
    assert desk.post(address="10.0.0.2") == 200
    desk.now_ns += int(1e9 / WRONG_TOKENS_PER_SECOND)
    assert desk.post() == 200
    assert desk.post(authorization=b"Bearer guess") == 401
    assert desk.post() == 429


@pytest.mark.parametrize(
    ("passed_ns", "seconds"), [(0, 6), (1, 6), (999_999_999, 6), (1_000_000_000, 5), (5_999_999_000, 1)]
)
def test_the_time_to_wait_is_told_in_full_seconds(passed_ns: int, seconds: int) -> None:
    desk = Desk()
    for _ in range(WRONG_TOKENS):
        desk.post(authorization=b"Bearer guess")
    desk.now_ns += passed_ns
    assert desk.post() == 429
    assert desk.answer is not None
    assert desk.answer.headers == (("Retry-After", str(seconds)),)
    assert f"wait {seconds} s".encode() in desk.answer.body


def test_commands_in_a_loop_are_limited() -> None:
    desk = Desk()
    answers = [desk.post() for _ in range(COMMANDS + 3)]
    assert answers == [200] * COMMANDS + [429] * 3
    assert len(desk.commands) == COMMANDS
    desk.now_ns += int(1e9 / COMMANDS_PER_SECOND)
    assert [desk.post(), desk.post()] == [200, 429]
