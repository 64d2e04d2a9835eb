"""hltnode ctl: commands for a running node, over its control socket or over HTTP."""

import json as json_module
import secrets
import time
import urllib.error
import urllib.request
from collections.abc import Callable
from pathlib import Path
from typing import Annotated, Any

import typer
import zmq
from rich.markup import escape
from zmq.utils.monitor import parse_monitor_message

from hltnode.client.keys import ClientKeys, SecurityError, load_client_keys
from hltnode.daemon.commands.common import KeyFileOption, ServerKeyOption, console, user_errors
from hltnode.daemon.commands.node.status_text import status_text
from hltnode.daemon.commands.terminal import echo
from hltnode.daemon.common.endpoints import REACHABLE_SECONDS, check_option, require_address
from hltnode.daemon.security.curve_keys import load_token
from hltnode.protocol.transport.control_messages import MAX_CONTROL_SIZE, decode_message, encode_message
from hltnode.protocol.transport.endpoints import is_ipv6
from hltnode.protocol.transport.feeder_messages import Error
from hltnode.protocol.transport.run_control_messages import Command, CommandName, Reply, RunState

DEFAULT_ENDPOINT = "tcp://127.0.0.1:5556"
# States that a node leaves without a command; configure and stop are complete after them.
_TRANSIENT = frozenset({RunState.CONFIGURED, RunState.DRAINING})
# Result of a command when the node has reached READY; its reply only reports the start of the work.
_DONE = {
    CommandName.CONFIGURE: "the back end is warm",
    CommandName.STOP: "everything is drained, the files are finished",
}
POLL_SECONDS = 0.1
# A machine that is switched off sends no answer at all.
CONNECT_SECONDS = REACHABLE_SECONDS
# Socket events that end the wait for a connection at once, and their reasons.
_TROUBLE = {
    zmq.EVENT_CONNECT_RETRIED: "the connection is refused: is the node running?",
    zmq.EVENT_DISCONNECTED: "the connection was lost before the answer: has the node ended, or does it use CURVE?",
    zmq.EVENT_HANDSHAKE_FAILED_NO_DETAIL: "the handshake failed: CURVE on one side only, or another --server-key?",
    zmq.EVENT_HANDSHAKE_FAILED_AUTH: "the node does not know this key",
    zmq.EVENT_HANDSHAKE_FAILED_PROTOCOL: "node and operator do not agree on CURVE, or on the key of the node",
}
# Above the size of /status of a large site.
MAX_ANSWER_BYTES = 16 << 20


class CtlError(ValueError):
    """The node cannot be reached, or its answer is not valid."""


Requester = Callable[[CommandName, int | None], Reply]


def ctl(
    command: Annotated[
        CommandName, typer.Argument(help="configure, start, pause, resume, stop, close, status or reload.")
    ],
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
    run: Annotated[
        int | None, typer.Option("--run", min=1, max=0xFFFFFFFF, help="start, close: the run number.")
    ] = None,
    timeout: Annotated[
        float,
        typer.Option(
            "--timeout",
            min=0.1,
            max=86_400,
            help="Seconds to wait for the answer, and for configure, stop and close to complete.",
        ),
    ] = 60.0,
    json: Annotated[
        bool, typer.Option("--json", help="Print the answer as JSON; status over HTTP has more keys than over --to.")
    ] = False,
) -> None:
    """Send a command to a running node and wait until it is executed; exit code 1 if the node refuses it.

    Scripts use --json: the state and the text of the answer, or the whole status.

    Examples: hltnode ctl status --to tcp://127.0.0.1:5556

    hltnode ctl start --run 4711 --http http://127.0.0.1:9105 --token-file /etc/hltnode/token
    """
    with user_errors():
        if http is None:
            with ControlConnection(check_option("--to", to), load_client_keys(server_key, key_file)) as connection:
                reply = command_and_wait(
                    lambda name, run: connection.request(name, run, timeout), command, run, timeout
                )
        else:
            token = None if token_file is None else load_token(token_file)
            if token is None and command is not CommandName.STATUS:
                raise SecurityError("expected --token-file for commands over HTTP")
            reply = command_and_wait(
                lambda name, run: request_over_http(http, token, name, run, timeout), command, run, timeout
            )
    if json:
        is_status = reply.ok and command is CommandName.STATUS
        content = {"ok": reply.ok, "state": reply.state, "text": reply.text}
        echo(reply.text if is_status else json_module.dumps(content))
        raise typer.Exit(0 if reply.ok else 1)
    if not reply.ok:
        console.print(f"[red]refused:[/red] {escape(reply.text)} (state {reply.state})", highlight=False)
        raise typer.Exit(1)
    echo(
        status_text(json_module.loads(reply.text)) if command is CommandName.STATUS else f"{reply.state}: {reply.text}"
    )


def command_and_wait(request: Requester, command: CommandName, run: int | None, timeout: float) -> Reply:
    """Send a command; after a transient state, poll until the node has left it. Raises CtlError."""
    end = time.monotonic() + timeout
    reply = request(command, run)
    waits = reply.ok and command in (CommandName.CONFIGURE, CommandName.STOP, CommandName.CLOSE)
    state = reply.state
    is_closing = waits and command is CommandName.CLOSE
    while waits and (state in _TRANSIENT or is_closing):
        if time.monotonic() > end:
            raise CtlError(f"still {'closing' if is_closing else state} after {timeout:g} s")
        time.sleep(POLL_SECONDS)
        status = request(CommandName.STATUS, None)
        state = status.state
        is_closing = is_closing and json_module.loads(status.text)["closing"] is not None
    text = _DONE.get(command, reply.text) if waits and state is RunState.READY else reply.text
    return Reply(reply.request, reply.ok and state is not RunState.ERROR, state, text)


class ControlConnection:
    """A connection to the control socket of a node, with CURVE if keys are given. Use it as context manager.

    Raises:
        CtlError: the endpoint is invalid.
    """

    def __init__(self, endpoint: str, keys: ClientKeys | None) -> None:
        self._endpoint = endpoint
        self._context: zmq.Context[zmq.Socket[bytes]] = zmq.Context()
        self._socket = self._context.socket(zmq.DEALER)
        self._socket.setsockopt(zmq.MAXMSGSIZE, MAX_CONTROL_SIZE)
        self._socket.setsockopt(zmq.LINGER, 0)
        self._socket.setsockopt(zmq.IPV6, is_ipv6(endpoint))
        if keys is not None:
            keys.apply(self._socket)
        self._monitor = self._socket.get_monitor_socket(
            sum(_TROUBLE) | zmq.EVENT_CONNECTED | zmq.EVENT_HANDSHAKE_SUCCEEDED
        )
        self._is_there = False
        self._is_connected = False
        try:
            self._socket.connect(endpoint)
        except zmq.ZMQError as error:
            self.close()
            raise CtlError(f"{endpoint}: {error}") from error

    def __enter__(self) -> "ControlConnection":
        return self

    def __exit__(self, *_error: object) -> None:
        self.close()

    def close(self) -> None:
        """Close the sockets."""
        self._socket.disable_monitor()
        self._monitor.close(linger=0)
        self._socket.close(linger=0)
        self._context.term()

    def request(self, name: CommandName, run: int | None, timeout: float) -> Reply:
        """One command and its reply. Raises CtlError, MessageError."""
        endpoint = self._endpoint
        request = secrets.randbits(32)
        self._socket.send(encode_message(Command(request, name, run)))
        start = time.monotonic()
        end = start + timeout
        connected_by = min(end, start + CONNECT_SECONDS)
        poller = zmq.Poller()
        poller.register(self._socket, zmq.POLLIN)
        poller.register(self._monitor, zmq.POLLIN)
        while True:
            limit = end if self._is_connected else connected_by
            left = limit - time.monotonic()
            # Read an arrived answer even after the timeout: this process may have been stopped meanwhile.
            ready = dict(poller.poll(max(0, int(left * 1000))))
            if not ready and left <= 0:
                break
            if self._socket in ready:
                answer = decode_message(self._socket.recv())
                if isinstance(answer, Reply) and answer.request == request:
                    return answer
                if isinstance(answer, Error):
                    raise CtlError(f"{endpoint}: {answer.text}")
            elif self._monitor in ready:
                self._note(zmq.Event(parse_monitor_message(self._monitor.recv_multipart())["event"]))
        if self._is_connected:
            raise CtlError(f"{endpoint}: no answer in {timeout:g} s")
        seconds = connected_by - start
        if self._is_there:
            raise CtlError(f"{endpoint}: no handshake in {seconds:g} s: is it a node, does it hang, does it use CURVE?")
        raise CtlError(f"{endpoint}: no connection in {seconds:g} s: is the address correct?")

    def _note(self, event: zmq.Event) -> None:
        if event == zmq.EVENT_CONNECTED:
            self._is_there = True
        elif event == zmq.EVENT_HANDSHAKE_SUCCEEDED:
            self._is_connected = True
        else:
            raise CtlError(f"{self._endpoint}: {_TROUBLE[event]}")


def request_over_http(url: str, token: bytes | None, name: CommandName, run: int | None, timeout: float) -> Reply:
    """One command over HTTP, or the status page. Raises CtlError."""
    if not url.startswith(("http://", "https://")):
        raise CtlError(f"{url}: expected an address such as http://127.0.0.1:9105")
    require_address(url)
    base = url.rstrip("/")
    if name is CommandName.STATUS:
        return _as_reply(url, True, _fetch(urllib.request.Request(f"{base}/status"), timeout))
    headers = {} if token is None else {"Authorization": f"Bearer {token.decode()}"}
    body = b"" if run is None else json_module.dumps({"run": run}).encode()
    request = urllib.request.Request(f"{base}/control/{name}", body, headers, method="POST")
    try:
        return _as_reply(url, True, _fetch(request, timeout))
    except urllib.error.HTTPError as error:
        with error:
            content = _decoded(url, error.read(MAX_ANSWER_BYTES))
        if "state" in content:
            return _as_reply(url, False, json_module.dumps(content).encode())
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
        content = json_module.loads(raw)
    except ValueError:
        content = None
    if not isinstance(content, dict):
        raise CtlError(f"{url}: not a node: the answer is not JSON")
    return content


def _as_reply(url: str, ok: bool, raw: bytes) -> Reply:
    content = _decoded(url, raw)
    try:
        state = RunState(content["state"])
    except (KeyError, ValueError) as error:
        raise CtlError(f"{url}: not a node: the answer has no state") from error
    return Reply(0, ok, state, content.get("text") or json_module.dumps(content))
