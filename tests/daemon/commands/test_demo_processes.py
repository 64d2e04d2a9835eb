"""What `hltnode demo` and a local farm know of their processes: ports, pages, and the simulated events."""

import contextlib
import socket
import threading
from collections.abc import Iterator

import pytest

from hltnode.daemon.commands import demo_processes
from hltnode.daemon.commands.demo import sample_of
from hltnode.daemon.commands.demo_processes import free_ports, get
from hltnode.daemon.commands.tool_command import tool_of
from hltnode.processing.offline.chain_tools import installed_tools


def test_a_port_is_given_once_even_if_it_is_free_again(monkeypatch: pytest.MonkeyPatch) -> None:
    class Socket(contextlib.nullcontext[None]):
        ports = iter([7, 8, 7, 9])

        def __enter__(self) -> "Socket":  # type: ignore[override]
            return self

        def bind(self, _address: tuple[str, int]) -> None:
            self.port = next(self.ports)

        def getsockname(self) -> tuple[str, int]:
            return "127.0.0.1", self.port

    monkeypatch.setattr(demo_processes, "_given", set())
    monkeypatch.setattr("hltnode.daemon.commands.demo_processes.socket.socket", Socket)
    assert free_ports(2) == [7, 8]
    assert free_ports(1) == [9]


@pytest.fixture
def half_a_page() -> Iterator[str]:
    """The address of a server that dies while it answers."""
    with socket.create_server(("127.0.0.1", 0)) as listening:

        def serve() -> None:
            connection, _ = listening.accept()
            with connection:
                connection.recv(4096)
                connection.sendall(b"HTTP/1.1 200 OK\r\nContent-Length: 10\r\n\r\nabc")

        serving = threading.Thread(target=serve)
        serving.start()
        yield f"http://127.0.0.1:{listening.getsockname()[1]}"
        serving.join()


@pytest.mark.loopback
def test_a_node_that_dies_while_it_answers_does_not_answer(half_a_page: str) -> None:
    with pytest.raises(OSError, match="IncompleteRead"):
        get(half_a_page)


@pytest.mark.parametrize(("chain", "file_format"), [("lhcb", "mep"), ("raw", "mdf")])
def test_the_demo_writes_records_where_there_is_no_odin(chain: str, file_format: str) -> None:
    assert (
        sample_of(tool_of(installed_tools(chain), chain, "simulation"), seed=1).identity["file_format"] == file_format
    )
