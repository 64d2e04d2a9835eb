"""hltnode ctl: commands to a running node, over its control socket or over HTTP."""

import json
import secrets
import time
import urllib.error
import urllib.request
from collections.abc import Callable
from pathlib import Path
from typing import Annotated, Any

import typer
import zmq

from hltnode.daemon.commands.common import KeyFileOption, ServerKeyOption, console, user_errors
from hltnode.daemon.common.zmq_sockets import MAX_CONTROL_BYTES
from hltnode.daemon.security.curve_keys import ClientKeys, SecurityError, load_client_keys, load_token
from hltnode.protocol.transport.control_messages import decode_message, encode_message
from hltnode.protocol.transport.feeder_messages import Error
from hltnode.protocol.transport.run_control_messages import Command, CommandName, Reply, RunState

DEFAULT_ENDPOINT = "tcp://127.0.0.1:5556"
# States that a node leaves without a command: configure and stop are complete when it has left them.
_TRANSIENT = frozenset({RunState.CONFIGURED, RunState.DRAINING})
POLL_SECONDS = 0.1
# A full /status of a large site.
MAX_ANSWER_BYTES = 16 << 20


class CtlError(ValueError):
    """The node cannot be reached, or its answer is not valid."""


Requester = Callable[[CommandName, int | None], Reply]


def ctl(
    command: Annotated[CommandName, typer.Argument(help="configure, start, pause, resume, stop, status or reload.")],
    to: Annotated[
        str, typer.Option("--to", metavar="ENDPOINT", help="Control endpoint of the node.")
    ] = DEFAULT_ENDPOINT,
    http: Annotated[
        str | None, typer.Option("--http", metavar="URL", help="HTTP address of the node instead of --to.")
    ] = None,
    token_file: Annotated[
        Path | None, typer.Option("--token-file", metavar="FILE", help="Token for commands over HTTP.")
    ] = None,
    server_key: ServerKeyOption = None,
    key_file: KeyFileOption = None,
    run: Annotated[int | None, typer.Option("--run", min=1, max=0xFFFFFFFF, help="start: the run number.")] = None,
    timeout: Annotated[
        float,
        typer.Option("--timeout", min=0.1, help="Seconds for the answer, and for configure and stop to complete."),
    ] = 60.0,
) -> None:
    """Send a command to a running node and wait until it is executed; exit code 1 if the node refuses it.

    Examples: hltnode ctl status --to tcp://127.0.0.1:5556

    hltnode ctl start --run 4711 --http http://127.0.0.1:9105 --token-file /etc/hltnode/token
    """
    with user_errors():
        if http is None:
            socket = connect(to, load_client_keys(server_key, key_file))
            try:
                reply = command_and_wait(
                    lambda name, run: request_over_socket(socket, to, name, run, timeout), command, run, timeout
                )
            finally:
                socket.close(linger=0)
                socket.context.term()
        else:
            token = None if token_file is None else load_token(token_file)
            if token is None and command is not CommandName.STATUS:
                raise SecurityError("--token-file is expected for commands over HTTP")
            reply = command_and_wait(
                lambda name, run: request_over_http(http, token, name, run, timeout), command, run, timeout
            )
    if not reply.ok:
        console.print(f"[red]refused:[/red] {reply.text} (state {reply.state})", highlight=False)
        raise typer.Exit(1)
    typer.echo(reply.text if command is CommandName.STATUS else f"{reply.state}: {reply.text}")


def command_and_wait(request: Requester, command: CommandName, run: int | None, timeout: float) -> Reply:
    """Send a command; if it leads to a transient state, poll until the node has left it. Raises CtlError."""
    end = time.monotonic() + timeout
    reply = request(command, run)
    waits = reply.ok and command in (CommandName.CONFIGURE, CommandName.STOP)
    state = reply.state
    while waits and state in _TRANSIENT:
        if time.monotonic() > end:
            raise CtlError(f"still {state} after {timeout:g} s")
        time.sleep(POLL_SECONDS)
        state = request(CommandName.STATUS, None).state
    return Reply(reply.request, reply.ok and state is not RunState.ERROR, state, reply.text)


def connect(endpoint: str, keys: ClientKeys | None) -> zmq.Socket[bytes]:
    """A control connection; CURVE with keys."""
    socket: zmq.Socket[bytes] = zmq.Context().socket(zmq.DEALER)
    socket.setsockopt(zmq.MAXMSGSIZE, MAX_CONTROL_BYTES)
    socket.setsockopt(zmq.LINGER, 0)
    if keys is not None:
        keys.apply(socket)
    try:
        socket.connect(endpoint)
    except zmq.ZMQError as error:
        socket.close()
        raise CtlError(f"{endpoint}: {error}") from error
    return socket


def request_over_socket(
    socket: zmq.Socket[bytes], endpoint: str, name: CommandName, run: int | None, timeout: float
) -> Reply:
    """One command over the control socket. Raises CtlError, MessageError."""
    request = secrets.randbits(32)
    socket.send(encode_message(Command(request, name, run)))
    end = time.monotonic() + timeout
    while socket.poll(max(0, int((end - time.monotonic()) * 1000))):
        answer = decode_message(socket.recv())
        if isinstance(answer, Reply) and answer.request == request:
            return answer
        if isinstance(answer, Error):
            raise CtlError(f"{endpoint}: {answer.text}")
    raise CtlError(f"{endpoint}: no answer in {timeout:g} s: is the node running, and are the keys correct?")


def request_over_http(url: str, token: bytes | None, name: CommandName, run: int | None, timeout: float) -> Reply:
    """One command over HTTP, or the status page. Raises CtlError."""
    if not url.startswith(("http://", "https://")):
        raise CtlError(f"{url}: expected an address such as http://127.0.0.1:9105")
    base = url.rstrip("/")
    if name is CommandName.STATUS:
        return _as_reply(url, True, _fetch(urllib.request.Request(f"{base}/status"), timeout))
    headers = {} if token is None else {"Authorization": f"Bearer {token.decode()}"}
    body = b"" if run is None else json.dumps({"run": run}).encode()
    request = urllib.request.Request(f"{base}/control/{name}", body, headers, method="POST")
    try:
        return _as_reply(url, True, _fetch(request, timeout))
    except urllib.error.HTTPError as error:
        with error:
            content = _decoded(url, error.read(MAX_ANSWER_BYTES))
        if "state" in content:
            return _as_reply(url, False, json.dumps(content).encode())
        raise CtlError(f"{url}: {error.code} {content.get('error', error.reason)}") from error


def _fetch(request: urllib.request.Request, timeout: float) -> bytes:
    try:
        with urllib.request.urlopen(request, timeout=timeout) as answer:
            content: bytes = answer.read(MAX_ANSWER_BYTES)
            return content
    except urllib.error.HTTPError:
        raise
    except OSError as error:
        raise CtlError(f"{request.full_url}: {error}") from error


def _decoded(url: str, raw: bytes) -> dict[str, Any]:
    try:
        content = json.loads(raw)
    except ValueError:
        content = None
    if not isinstance(content, dict):
        raise CtlError(f"{url}: not a node: no JSON in its answer")
    return content


def _as_reply(url: str, ok: bool, raw: bytes) -> Reply:
    content = _decoded(url, raw)
    try:
        state = RunState(content["state"])
    except (KeyError, ValueError) as error:
        raise CtlError(f"{url}: not a node: no state in its answer") from error
    return Reply(0, ok, state, content.get("text") or json.dumps(content))
