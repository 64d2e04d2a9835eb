"""Commands over HTTP: POST /control/COMMAND with a bearer token, body empty or {"run": N} for start and close."""

import hmac
import json
import time
from collections.abc import Callable
from http import HTTPStatus

from hltnode.daemon.common.token_buckets import TokenBucket, TokenBuckets
from hltnode.daemon.common.vocabulary import LoginFailure
from hltnode.daemon.monitoring.http_server import CONTROL_PATH, RefusedError, Request, Response, as_json
from hltnode.daemon.run_control.controller import CommandResult
from hltnode.protocol.transport.run_control_messages import CommandName

_SCHEME = b"bearer "
_CHALLENGE = (("WWW-Authenticate", "Bearer"),)
_OWN_PAGES = (b"same-origin", b"none")
# Enough for an operator who pastes wrong tokens; at this pace, a token of 16 characters is not found in years.
WRONG_TOKENS = 10
WRONG_TOKENS_PER_SECOND = 1 / 6
# A run control of a site sends a handful of commands for a run; scripts in a loop must not keep the node busy.
COMMANDS = 20
COMMANDS_PER_SECOND = 2.0


class HttpControl:
    """Checks token and command, then executes the command.

    Args:
        token: returns the current token; None if commands over HTTP are disabled.
        execute: executes a command; the last argument is its origin, for the log.
        login_failed: counts a refused client, with its address: without the right token, with too many attempts, from
            a page of another site, or while commands are disabled.
    """

    def __init__(
        self,
        token: Callable[[], bytes | None],
        execute: Callable[[CommandName, int | None, str], CommandResult],
        login_failed: Callable[[LoginFailure, str], None],
        *,
        clock_ns: Callable[[], int] = time.monotonic_ns,
    ) -> None:
        self._token = token
        self._execute = execute
        self._login_failed = login_failed
        self._clock_ns = clock_ns
        self._wrong_tokens = TokenBuckets(WRONG_TOKENS, WRONG_TOKENS_PER_SECOND)
        self._commands = TokenBucket(COMMANDS, COMMANDS_PER_SECOND, clock_ns())

    def answer(self, request: Request) -> Response:
        """200 with the state after the command, or 409 with the reason of the refusal. Raises RefusedError."""
        self._check_token(request)
        word = request.path.removeprefix(CONTROL_PATH)
        try:
            name = CommandName(word)
        except ValueError:
            known = ", ".join(CommandName)
            raise RefusedError(HTTPStatus.NOT_FOUND, f"unknown command; commands are {known}") from None
        run = _run_number(request.body)
        self._check_limit(self._commands, request.address)
        self._commands.spend(1)
        result = self._execute(name, run, f"http {request.address}")
        status = HTTPStatus.OK if result.ok else HTTPStatus.CONFLICT
        return as_json(status, {"ok": result.ok, "state": result.state, "text": result.text})

    def _check_token(self, request: Request) -> None:
        token = self._token()
        if token is None:
            self._login_failed(LoginFailure.COMMANDS_OFF, request.address)
            raise RefusedError(HTTPStatus.FORBIDDEN, "no commands over HTTP: security.http_token_file is not set")
        # Browsers say which page sends a request. Another site cannot set Authorization, since the node allows no CORS;
        # this check does not depend on that.
        if request.fields.get(b"sec-fetch-site", b"none") not in _OWN_PAGES:
            self._login_failed(LoginFailure.FOREIGN_PAGE, request.address)
            raise RefusedError(HTTPStatus.FORBIDDEN, "no commands from the page of another site")
        given = request.fields.get(b"authorization", b"")
        if not given.lower().startswith(_SCHEME):
            self._login_failed(LoginFailure.NO_TOKEN, request.address)
            raise RefusedError(HTTPStatus.UNAUTHORIZED, "expected Authorization: Bearer TOKEN", _CHALLENGE)
        attempts = self._wrong_tokens.of(request.address, self._clock_ns())
        self._check_limit(attempts, request.address)
        # In constant time: the response time must not reveal how many characters of a wrong token match.
        if not hmac.compare_digest(given[len(_SCHEME) :].strip(), token):
            attempts.spend(1)
            self._login_failed(LoginFailure.WRONG_TOKEN, request.address)
            raise RefusedError(HTTPStatus.UNAUTHORIZED, "wrong token", _CHALLENGE)

    def _check_limit(self, bucket: TokenBucket, address: str) -> None:
        wait_ns = bucket.wait_ns(1, self._clock_ns())
        if wait_ns:
            # Rounded up; the nanosecond that the bucket adds against rounding errors is no second more.
            seconds = max(1, -(-(wait_ns - 1) // 1_000_000_000))
            self._login_failed(LoginFailure.TOO_MANY, address)
            retry = (("Retry-After", str(seconds)),)
            raise RefusedError(HTTPStatus.TOO_MANY_REQUESTS, f"too many attempts: wait {seconds} s", retry)


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
