"""Commands over HTTP: POST /control/COMMAND with a bearer token, body empty or {"run": N} for start and close."""

import hmac
import json
from collections.abc import Callable
from http import HTTPStatus

from hltnode.daemon.common.vocabulary import LoginFailure
from hltnode.daemon.monitoring.http_server import CONTROL_PATH, RefusedError, Request, Response, as_json
from hltnode.daemon.run_control.controller import CommandResult
from hltnode.protocol.transport.run_control_messages import CommandName

_SCHEME = b"bearer "
_CHALLENGE = (("WWW-Authenticate", "Bearer"),)


class HttpControl:
    """Checks token and command, then executes the command.

    Args:
        token: returns the current token; None if commands over HTTP are disabled.
        execute: executes a command.
        login_failed: counts a command without the right token, or one sent while commands are disabled.
    """

    def __init__(
        self,
        token: Callable[[], bytes | None],
        execute: Callable[[CommandName, int | None], CommandResult],
        login_failed: Callable[[LoginFailure], None],
    ) -> None:
        self._token = token
        self._execute = execute
        self._login_failed = login_failed

    def answer(self, request: Request) -> Response:
        """200 with the state after the command, or 409 with the reason of the refusal. Raises RefusedError."""
        self._check_token(request)
        word = request.path.removeprefix(CONTROL_PATH)
        try:
            name = CommandName(word)
        except ValueError:
            known = ", ".join(CommandName)
            raise RefusedError(HTTPStatus.NOT_FOUND, f"unknown command; commands are {known}") from None
        result = self._execute(name, _run_number(request.body))
        status = HTTPStatus.OK if result.ok else HTTPStatus.CONFLICT
        return as_json(status, {"ok": result.ok, "state": result.state, "text": result.text})

    def _check_token(self, request: Request) -> None:
        token = self._token()
        if token is None:
            self._login_failed(LoginFailure.COMMANDS_OFF)
            raise RefusedError(HTTPStatus.FORBIDDEN, "no commands over HTTP: security.http_token_file is not set")
        given = request.fields.get(b"authorization", b"")
        if not given.lower().startswith(_SCHEME):
            self._login_failed(LoginFailure.NO_TOKEN)
            raise RefusedError(HTTPStatus.UNAUTHORIZED, "expected Authorization: Bearer TOKEN", _CHALLENGE)
        # In constant time: the response time must not reveal how many characters of a wrong token match.
        if not hmac.compare_digest(given[len(_SCHEME) :].strip(), token):
            self._login_failed(LoginFailure.WRONG_TOKEN)
            raise RefusedError(HTTPStatus.UNAUTHORIZED, "wrong token", _CHALLENGE)


def _run_number(body: bytes) -> int | None:
    if not body:
        return None
    try:
        content = json.loads(body)
    # Deeply nested brackets raise RecursionError.
    except (ValueError, RecursionError):
        content = None
    if not isinstance(content, dict) or not content.keys() <= {"run"}:
        raise RefusedError(HTTPStatus.BAD_REQUEST, 'expected no body, or {"run": NUMBER}')
    run = content.get("run")
    if run is None:
        return None
    if type(run) is not int or not 0 < run < 1 << 32:
        raise RefusedError(HTTPStatus.BAD_REQUEST, "expected a run number from 1 to 4294967295")
    return run
