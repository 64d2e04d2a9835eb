"""hltnode ctl and a faulty node: an error at once instead of waiting for an answer."""

import itertools
import socket
import threading
import time
from collections.abc import Iterator
from contextlib import contextmanager
from types import SimpleNamespace

import pytest
import zmq
from typer.testing import CliRunner

from hltnode.daemon.cli import app
from hltnode.daemon.commands.node.ctl import command_and_wait
from hltnode.protocol.transport.run_control_messages import CommandName, Reply, RunState

pytestmark = pytest.mark.loopback


def ctl(*arguments: str) -> tuple[int, str, float]:
    """Exit code, output and seconds of a command."""
    begin = time.monotonic()
    result = CliRunner().invoke(app, ["ctl", *arguments])
    return result.exit_code, " ".join(result.output.split()), time.monotonic() - begin


@contextmanager
def listener(*, closes: bool) -> Iterator[str]:
    """The endpoint of a TCP server that is not a node: it closes each connection, or sends nothing."""
    accepted: list[socket.socket] = []
    with socket.create_server(("127.0.0.1", 0)) as server:

        def serve() -> None:
            while True:
                try:
                    connection, _ = server.accept()
                except OSError:
                    return
                if closes:
                    connection.close()
                else:
                    accepted.append(connection)

        thread = threading.Thread(target=serve)
        thread.start()
        try:
            yield f"tcp://127.0.0.1:{server.getsockname()[1]}"
        finally:
            server.shutdown(socket.SHUT_RDWR)
            thread.join()
            for connection in accepted:
                connection.close()


@pytest.mark.parametrize("where", [["--to", "tcp://127.0.0.1:1"], ["--http", "http://127.0.0.1:1"]])
def test_an_endpoint_without_a_listener_is_an_error_at_once(where: list[str]) -> None:
    code, output, seconds = ctl("status", *where)
    assert code == 2
    assert "refused" in output
    assert seconds < 10


def test_a_closed_connection_is_an_error_at_once() -> None:
    with listener(closes=True) as endpoint:
        code, output, seconds = ctl("status", "--to", endpoint)
    assert code == 2
    assert "is the node running?" in output or "CURVE on one side only" in output or "was lost" in output
    assert seconds < 10


def test_an_endpoint_without_an_answer_is_an_error_after_the_connection_timeout(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr("hltnode.daemon.commands.node.ctl.CONNECT_SECONDS", 0.3)
    with listener(closes=False) as endpoint:
        code, output, seconds = ctl("status", "--to", endpoint)
    assert code == 2
    assert "no handshake in 0.3 s" in output
    assert "CURVE" in output
    assert seconds < 10


def test_a_missing_endpoint_and_a_silent_endpoint_have_different_errors(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("hltnode.daemon.commands.node.ctl.CONNECT_SECONDS", 0.3)
    # An address for documentation (RFC 5737), to which nothing leads.
    code, output, seconds = ctl("status", "--to", "tcp://192.0.2.1:5556")
    assert code == 2
    assert "no connection in 0.3 s" in output or "refused" in output
    assert seconds < 10


class StalledPoller(zmq.Poller):
    """A process that runs again when something has come."""

    def poll(self, timeout: float | None = None) -> list[tuple[object, int]]:
        del timeout
        return super().poll(30_000)


def test_an_answer_that_arrived_while_the_command_was_stopped_is_read(monkeypatch: pytest.MonkeyPatch) -> None:
    # The start of the command, of its request, and the first poll.
    times = itertools.chain([0.0, 0.0], itertools.repeat(100.0))
    monkeypatch.setattr("hltnode.daemon.commands.node.ctl.time", SimpleNamespace(monotonic=lambda: next(times)))
    monkeypatch.setattr("hltnode.daemon.commands.node.ctl.zmq.Poller", StalledPoller)
    with listener(closes=True) as endpoint:
        code, output, _ = ctl("status", "--to", endpoint)
    assert code == 2
    assert "the handshake failed" in output or "was lost" in output or "is refused" in output


def test_without_keys_the_error_mentions_that_the_node_may_use_curve() -> None:
    context: zmq.Context[zmq.Socket[bytes]] = zmq.Context()
    node = context.socket(zmq.ROUTER)
    try:
        node.curve_server = True
        node.curve_secretkey = zmq.curve_keypair()[1]
        port = node.bind_to_random_port("tcp://127.0.0.1")
        code, output, seconds = ctl("status", "--to", f"tcp://127.0.0.1:{port}")
    finally:
        node.close(linger=0)
        context.term()
    assert code == 2
    assert "CURVE" in output
    assert seconds < 10


def test_close_waits_until_the_node_has_closed_the_run() -> None:
    answers = iter(['{"closing": 7}', '{"closing": 7}', '{"closing": null}'])
    asked = []

    def request(name: CommandName, run: int | None) -> Reply:
        asked.append((name, run))
        text = next(answers) if name is CommandName.STATUS else "run 7 is closed"
        return Reply(1, True, RunState.RUNNING, text)

    reply = command_and_wait(request, CommandName.CLOSE, 7, 10.0)
    assert reply.ok
    assert reply.text == "run 7 is closed"
    assert asked == [(CommandName.CLOSE, 7)] + [(CommandName.STATUS, None)] * 3


def test_a_completed_stop_reports_its_result_and_not_its_start() -> None:
    states = iter([RunState.DRAINING, RunState.READY])

    def request(name: CommandName, _run: int | None) -> Reply:
        state = next(states) if name is CommandName.STATUS else RunState.DRAINING
        return Reply(1, True, state, "{}" if name is CommandName.STATUS else "draining")

    reply = command_and_wait(request, CommandName.STOP, None, 10.0)
    assert (reply.ok, reply.state, reply.text) == (
        True,
        RunState.READY,
        "everything is drained, the files are finished",
    )
