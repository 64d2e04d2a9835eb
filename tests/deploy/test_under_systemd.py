"""The Debian package on a separate machine: a container boots Debian without a compiler, and systemd runs the node.

Needs root, systemd-nspawn and debootstrap of Debian, and its mirror: `make systemd`.
"""

from __future__ import annotations

import json
import os
import shutil
import signal
import subprocess
import time
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest

from tests.deploy.tools import DEPLOY, tool

pytestmark = [pytest.mark.slow, pytest.mark.process, pytest.mark.timeout(1800)]

HLTNODE = "/opt/hltnode/bin/hltnode"
OUTPUT = "/var/lib/hltnode/output"
EVENTS = "/root/events.mdf"
TO = "tcp://127.0.0.1:5555"


class Machine:
    """A booted container with its own loopback network."""

    def __init__(self, root: Path) -> None:
        self.root = root
        nspawn = [tool("systemd-nspawn"), "--quiet", f"--directory={root}", "--register=no", "--keep-unit"]
        self._log = (root.parent / "console").open("wb")
        self._nspawn = subprocess.Popen(
            [*nspawn, "--private-network", "--boot"], stdin=subprocess.DEVNULL, stdout=self._log, stderr=self._log
        )
        self._leader = self._find_leader()

    def _find_leader(self) -> str:
        found: list[str] = []

        def is_there() -> bool:
            assert self._nspawn.poll() is None, self._console()
            children = Path(f"/proc/{self._nspawn.pid}/task/{self._nspawn.pid}/children").read_text().split()
            found[:] = [child for child in children if Path(f"/proc/{child}/comm").read_text().strip() == "systemd"]
            return bool(found)

        wait_for(is_there, 120)
        return found[0]

    def _console(self) -> str:
        return (self.root.parent / "console").read_text(errors="replace")[-3000:]

    def begin(self, *command: str) -> subprocess.Popen[str]:
        enter = ["nsenter", f"--target={self._leader}", "--mount", "--uts", "--ipc", "--net", "--pid", "--cgroup", "--"]
        environment = {"PATH": "/usr/sbin:/usr/bin:/sbin:/bin", "HOME": "/root", "TERM": "dumb"}
        return subprocess.Popen(
            [*enter, *command], stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True, env=environment
        )

    def run(self, *command: str, timeout: float = 300) -> subprocess.CompletedProcess[str]:
        """Run a command in the container; returns its output, errors included."""
        process = self.begin(*command)
        try:
            said, _ = process.communicate(timeout=timeout)
        finally:
            process.kill()
        return subprocess.CompletedProcess(command, process.returncode, said)

    def property(self, name: str) -> str:
        return self.run("systemctl", "show", "--property", name, "--value", "hltnode").stdout.strip()

    def journal(self, *options: str) -> list[str]:
        return self.run("journalctl", "--no-pager", "--output=cat", *options).stdout.splitlines()

    def start_node(self) -> None:
        self.run("systemctl", "reset-failed", "hltnode")
        started = self.run("systemctl", "start", "hltnode")
        assert started.returncode == 0, "\n".join(self.journal("--unit=hltnode"))

    def end(self) -> None:
        self._nspawn.send_signal(signal.SIGTERM)
        try:
            self._nspawn.wait(120)
        except subprocess.TimeoutExpired:
            self._nspawn.kill()
            self._nspawn.wait()
        self._log.close()


def wait_for(is_so: Callable[[], bool], seconds: float) -> None:
    end = time.monotonic() + seconds
    while not is_so():
        assert time.monotonic() < end
        time.sleep(0.2)


@pytest.fixture(scope="module")
def machine(package: Path, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Machine]:
    if os.geteuid() != 0:
        pytest.skip("only root can boot a container")
    for program in ("systemd-nspawn", "debootstrap", "nsenter"):
        tool(program)
    root = tmp_path_factory.mktemp("machine") / "root"
    suite = next(
        line.removeprefix("VERSION_CODENAME=")
        for line in Path("/etc/os-release").read_text().splitlines()
        if line.startswith("VERSION_CODENAME=")
    )
    made = subprocess.run(
        [tool("debootstrap"), "--variant=minbase", "--include=systemd,systemd-sysv,dbus", suite, root],
        capture_output=True,
        text=True,
        check=False,
    )
    if made.returncode != 0:
        pytest.skip(f"Debian cannot be loaded: {made.stdout[-500:]}")
    shutil.copy(package, root / "root/hltnode.deb")
    installed = subprocess.run(
        [
            *(tool("systemd-nspawn"), "--quiet", f"--directory={root}", "--register=no", "--keep-unit", "--pipe"),
            *("apt-get", "install", "--yes", "--no-install-recommends", "/root/hltnode.deb"),
        ],
        capture_output=True,
        text=True,
        check=False,
    )
    assert installed.returncode == 0, installed.stdout[-3000:] + installed.stderr[-3000:]
    machine = Machine(root)
    try:
        wait_for(lambda: machine.run("systemctl", "is-system-running").stdout.strip() == "running", 120)
        simulated = machine.run(HLTNODE, "simulate", "-n", "100", "-o", EVENTS)
        assert simulated.returncode == 0, simulated.stdout
        yield machine
    finally:
        machine.end()
        shutil.rmtree(root, ignore_errors=True)


def replay(machine: Machine) -> subprocess.CompletedProcess[str]:
    return machine.run(HLTNODE, "replay", EVENTS, "--to", TO, timeout=600)


def test_the_unit_starts_and_every_line_of_the_node_in_the_journal_is_json(machine: Machine) -> None:
    assert machine.run("systemctl", "enable", "hltnode").returncode == 0
    machine.start_node()
    assert machine.property("StatusText").startswith("data on tcp://")
    status = machine.run(HLTNODE, "ctl", "status")
    assert status.returncode == 0, status.stdout
    assert replay(machine).returncode == 0
    lines = [json.loads(line) for line in machine.journal("--identifier=hltnode")]
    assert {"back_end", "trigger"} <= {line["event"] for line in lines}
    assert [line["text"] for line in lines if line["event"] == "warning"] == [
        "no C++ compiler (g++, clang++): NumPy evaluates the lines, which is slower"
    ]


def test_a_reload_applies_the_keys_that_can_change(machine: Machine) -> None:
    machine.start_node()
    path = machine.root / "etc/hltnode/node.toml"
    text = (DEPLOY / "node.toml").read_text()
    assert "mep_timeout_ms = 750" in text
    path.write_text(text.replace("mep_timeout_ms = 750", "mep_timeout_ms = 777"))
    assert machine.run("systemctl", "reload", "hltnode").returncode == 0
    wait_for(lambda: any('"new": "777"' in line for line in machine.journal("--identifier=hltnode")), 30)


def test_only_members_of_the_group_can_read_the_output(machine: Machine) -> None:
    machine.start_node()
    assert replay(machine).returncode == 0
    for user, groups in (("collector", ["--groups", "hltnode"]), ("stranger", [])):
        assert machine.run("useradd", *groups, user).returncode == 0
    read = f"cat {OUTPUT}/*.json"
    assert machine.run("runuser", "-u", "collector", "--", "sh", "-c", read).returncode == 0
    assert machine.run("runuser", "-u", "stranger", "--", "sh", "-c", read).returncode != 0


def fed(machine: Machine) -> subprocess.Popen[str]:
    """A feeder that has started and runs for ten seconds."""

    def meps() -> int:
        status = json.loads(machine.run(HLTNODE, "ctl", "status", "--json").stdout)
        return int(status["accounting"]["meps"]["complete"])

    before = meps()
    feeder = machine.begin(HLTNODE, "replay", EVENTS, "--repeat", "60", "--rate", "600", "--to", TO)
    wait_for(lambda: meps() > before, 120)
    return feeder


def test_a_killed_node_is_started_again_and_its_feeder_loses_nothing(machine: Machine) -> None:
    machine.start_node()
    before = int(machine.property("NRestarts"))
    feeder = fed(machine)
    assert machine.run("systemctl", "kill", "--signal=SIGKILL", "hltnode").returncode == 0
    said, _ = feeder.communicate(timeout=300)
    assert feeder.returncode == 0, said
    assert "0 MEPs not acknowledged" in said
    assert int(machine.property("NRestarts")) == before + 1


def test_a_node_that_hangs_is_ended_by_the_watchdog_and_started_again(machine: Machine) -> None:
    machine.start_node()
    before = int(machine.property("NRestarts"))
    feeder = fed(machine)
    assert machine.run("systemctl", "kill", "--kill-whom=main", "--signal=SIGSTOP", "hltnode").returncode == 0
    wait_for(lambda: int(machine.property("NRestarts")) == before + 1, 90)
    said, _ = feeder.communicate(timeout=300)
    assert feeder.returncode == 0, said
    assert any("Watchdog timeout" in line for line in machine.journal("--unit=hltnode"))


def test_a_stop_drains_and_a_removed_package_leaves_the_data(machine: Machine) -> None:
    machine.start_node()
    assert replay(machine).returncode == 0
    assert machine.run("systemctl", "stop", "hltnode").returncode == 0
    assert (machine.property("Result"), machine.property("ActiveState")) == ("success", "inactive")
    assert '"exit_code": 0, "event": "stopped"' in machine.journal("--identifier=hltnode")[-1]
    kept = machine.run("ls", OUTPUT).stdout
    assert ".part" not in kept
    assert machine.run("apt-get", "purge", "--yes", "hltnode").returncode == 0
    assert machine.run("ls", OUTPUT).stdout == kept
    assert machine.run("ls", "/opt/hltnode").returncode != 0
