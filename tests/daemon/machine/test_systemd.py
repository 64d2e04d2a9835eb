"""systemd's notification protocol against a socket of our own."""

from __future__ import annotations

import os
import socket
from collections.abc import Iterator
from pathlib import Path

import pytest

from hltnode.daemon.machine.systemd import Notifier


@pytest.fixture
def receiver() -> Iterator[socket.socket]:
    with socket.socket(socket.AF_UNIX, socket.SOCK_DGRAM) as receiver:
        receiver.settimeout(5)
        yield receiver


def talk(notifier: Notifier, receiver: socket.socket) -> list[str]:
    notifier.ready("taking data")
    notifier.watchdog()
    notifier.status("run 7")
    notifier.stopping("draining")
    notifier.close()
    return [receiver.recv(4096).decode() for _ in range(4)]


EXPECTED = ["READY=1\nSTATUS=taking data", "WATCHDOG=1", "STATUS=run 7", "STOPPING=1\nSTATUS=draining"]


def test_messages_reach_a_socket_in_the_file_system(tmp_path: Path, receiver: socket.socket) -> None:
    path = str(tmp_path / "notify")
    receiver.bind(path)
    assert talk(Notifier({"NOTIFY_SOCKET": path}), receiver) == EXPECTED


def test_messages_reach_an_abstract_socket(receiver: socket.socket) -> None:
    name = f"hltnode-test-{os.getpid()}"
    receiver.bind("\0" + name)
    assert talk(Notifier({"NOTIFY_SOCKET": "@" + name}), receiver) == EXPECTED


def test_a_reload_is_announced_with_its_time(tmp_path: Path, receiver: socket.socket) -> None:
    path = str(tmp_path / "notify")
    receiver.bind(path)
    notifier = Notifier({"NOTIFY_SOCKET": path})
    notifier.reloading()
    notifier.close()
    first, second = receiver.recv(4096).decode().split("\n")
    assert first == "RELOADING=1"
    assert int(second.removeprefix("MONOTONIC_USEC=")) > 0


def test_without_systemd_nothing_is_sent_and_nothing_is_watched() -> None:
    notifier = Notifier({})
    notifier.ready("taking data")
    notifier.watchdog()
    notifier.close()
    assert notifier.failures == 0
    assert notifier.watchdog_interval is None


def test_a_missing_socket_is_counted_and_harmless(tmp_path: Path) -> None:
    notifier = Notifier({"NOTIFY_SOCKET": str(tmp_path / "absent")})
    notifier.watchdog()
    notifier.close()
    assert notifier.failures == 1


def test_the_watchdog_is_fed_twice_per_limit() -> None:
    environment = {"WATCHDOG_USEC": "10000000", "WATCHDOG_PID": str(os.getpid())}
    assert Notifier(environment).watchdog_interval == 5.0
    assert Notifier({"WATCHDOG_USEC": "10000000"}).watchdog_interval == 5.0


@pytest.mark.parametrize("environment", [{"WATCHDOG_USEC": "1000", "WATCHDOG_PID": "1"}, {"WATCHDOG_USEC": "soon"}])
def test_a_watchdog_of_another_process_or_of_nonsense_is_none(environment: dict[str, str]) -> None:
    assert Notifier(environment).watchdog_interval is None
