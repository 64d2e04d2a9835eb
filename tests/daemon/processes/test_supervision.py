"""A node process and systemd: its notifications, and the log of a node that the watchdog ends."""

import os
import signal
import socket
from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.daemon.processes.test_processes import Site, site

__all__ = ["site"]

pytestmark = [pytest.mark.process, pytest.mark.loopback]


class Supervisor:
    """The notification socket of systemd."""

    def __init__(self, path: Path) -> None:
        self._socket = socket.socket(socket.AF_UNIX, socket.SOCK_DGRAM)
        self._socket.bind(str(path))
        self._socket.settimeout(30)

    def wait_for(self, wanted: str) -> list[str]:
        """The received messages up to the first one that contains `wanted`."""
        messages = [""]
        while wanted not in messages[-1]:
            messages.append(self._socket.recv(4096).decode())
        return messages[1:]

    def close(self) -> None:
        self._socket.close()


@pytest.fixture
def supervisor(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[Supervisor]:
    supervisor = Supervisor(tmp_path / "notify")
    monkeypatch.setenv("NOTIFY_SOCKET", str(tmp_path / "notify"))
    monkeypatch.setenv("WATCHDOG_USEC", "200000")
    monkeypatch.delenv("WATCHDOG_PID", raising=False)
    yield supervisor
    supervisor.close()


def test_systemd_is_notified_of_start_life_reload_and_stop(site: Site, supervisor: Supervisor) -> None:
    node = site.start("tests.daemon.node_process", str(site.config))
    assert supervisor.wait_for("READY=1")[-1] == f"READY=1\nSTATUS=data on {site.data}"
    assert site.status() is not None, "READY=1 comes when the node serves"
    supervisor.wait_for("WATCHDOG=1")
    supervisor.wait_for("WATCHDOG=1")
    node.send_signal(signal.SIGHUP)
    assert supervisor.wait_for("RELOADING=1")[-1].split("\n")[1].startswith("MONOTONIC_USEC=")
    supervisor.wait_for("READY=1")
    node.send_signal(signal.SIGTERM)
    assert supervisor.wait_for("STOPPING=1")[-1] == "STOPPING=1\nSTATUS=draining"
    assert site.wait(node) == 0, site.logs()


def test_a_node_that_the_watchdog_ends_leaves_the_stack_of_each_thread_in_its_log(
    site: Site, supervisor: Supervisor
) -> None:
    node = site.start("tests.daemon.node_process", str(site.config))
    supervisor.wait_for("READY=1")
    node.send_signal(signal.SIGABRT)
    assert site.wait(node) == -signal.SIGABRT
    log = "".join(path.read_text() for path in site.directory.glob("log*"))
    assert "Fatal Python error: Aborted" in log
    # The loop and at least the thread of the pipeline.
    assert log.count("(most recent call first)") >= 2
    assert f"{os.sep}node_process.py" in log
