"""What `hltnode demo` and a local farm know of their processes: ports, pages, and the simulated events."""

import socket
import threading
from collections.abc import Iterator
from pathlib import Path

import pytest

from hltnode.daemon.commands import demo_processes
from hltnode.daemon.commands.demo import sample_of
from hltnode.daemon.commands.demo_processes import free_ports, get
from hltnode.daemon.commands.tool_command import tool_of
from hltnode.processing.offline.chain_tools import installed_tools


@pytest.fixture
def ports_of_connections(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """The file with the range of ports of connections: 11000 to 60999."""
    file = tmp_path / "ip_local_port_range"
    file.write_text("11000\t60999\n")
    monkeypatch.setattr(demo_processes, "PORTS_OF_CONNECTIONS", file)
    monkeypatch.setattr(demo_processes, "_given", set())
    return file


@pytest.mark.usefixtures("ports_of_connections")
def test_a_port_is_given_once_free_and_below_the_ports_of_connections(monkeypatch: pytest.MonkeyPatch) -> None:
    with socket.create_server(("127.0.0.1", 0)) as server:
        taken: int = server.getsockname()[1]
        drawn: list[tuple[int, int]] = []
        numbers = iter([10_007, 10_008, taken, 10_007, 10_009])

        def randrange(first: int, end: int) -> int:
            drawn.append((first, end))
            return next(numbers)

        monkeypatch.setattr(demo_processes._RANDOM, "randrange", randrange)
        assert free_ports(2) == [10_007, 10_008]
        assert free_ports(1) == [10_009]
    assert set(drawn) == {(10_000, 11_000)}


@pytest.mark.parametrize("text", ["1024\t65535\n", "10999\t65535\n"])
def test_a_machine_that_gives_all_ports_to_connections_has_free_ones(ports_of_connections: Path, text: str) -> None:
    ports_of_connections.write_text(text)
    assert len(set(free_ports(20))) == 20
    assert demo_processes._first_port_of_connections() == 65536


def test_a_machine_without_a_range_of_connections_has_that_of_linux(ports_of_connections: Path) -> None:
    ports_of_connections.unlink()
    assert demo_processes._first_port_of_connections() == 32768


@pytest.mark.usefixtures("ports_of_connections")
def test_no_free_port_is_an_error(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(demo_processes, "TRIES", 3)
    monkeypatch.setattr(demo_processes, "_is_free", lambda _port: False)
    with pytest.raises(OSError, match="no free port was found from 10000 to 10999"):
        free_ports(1)


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
