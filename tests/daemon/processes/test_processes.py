"""Real node and feeder processes over TCP: kill, restart and SIGTERM."""

import json
import signal
import subprocess
import sys
import time
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest

from hltnode.daemon.commands.demo_processes import free_ports
from hltnode.daemon.common.vocabulary import CloseReason
from hltnode.daemon.event_building.accounting import closes
from hltnode.protocol.raw_data.mdf import iter_records
from hltnode.protocol.raw_data.mep import encode_mep
from tests.daemon.fakes import RUN, synthetic_meps
from tests.daemon.pages import status_page

pytestmark = [pytest.mark.process, pytest.mark.loopback]

ROOT = Path(__file__).resolve().parents[3]
EVENTS = 8
MEPS = 150
RATE = 600
"""Events per second: the whole feed takes two seconds."""


class Site:
    """One node and its feeders on this machine."""

    def __init__(self, directory: Path, feeders: int, meps: int = MEPS) -> None:
        self.directory = directory
        self.feeders = feeders
        self.meps = meps
        self.output = directory / "out"
        data, control, decisions, self.http = free_ports(4)
        self.data, self.control = f"tcp://127.0.0.1:{data}", f"tcp://127.0.0.1:{control}"
        self.config = directory / "node.toml"
        self.config.write_text(
            f"""
[node]
name = "testnode"
[network]
data = "{self.data}"
control = "{self.control}"
decisions = "tcp://127.0.0.1:{decisions}"
max_frame_bytes = 65536
[builder]
min_feeders = {feeders}
mep_timeout_ms = 400
max_mep_bytes = 65536
[pipeline]
slot_bytes = 524288
max_events = 256
flush_deadline_us = 10_000
[output]
directory = "{self.output}"
[http]
port = {self.http}
"""
        )
        self.input = directory / "events.mep"
        self.input.write_bytes(b"".join(encode_mep(list(m.mfps.values())) for m in synthetic_meps(meps, events=EVENTS)))
        self.processes: list[subprocess.Popen[bytes]] = []

    def start(self, *arguments: str) -> subprocess.Popen[bytes]:
        log = (self.directory / f"log{len(self.processes)}").open("wb")
        with log:
            process = subprocess.Popen([sys.executable, "-m", *arguments], cwd=ROOT, stdout=log, stderr=log)
        self.processes.append(process)
        return process

    def start_node(self) -> subprocess.Popen[bytes]:
        node = self.start("tests.daemon.node_process", str(self.config))
        self.wait_for(lambda: self.status() is not None)
        return node

    def start_feeder(self, number: int) -> subprocess.Popen[bytes]:
        return self.start(
            "hltnode.daemon", "replay", "--to", self.data, "--control", self.control, str(self.input),
            "--run", str(RUN), "--part", f"{number}/{self.feeders}", "--rate", str(RATE),
        )  # fmt: skip

    def status(self) -> dict[str, Any] | None:
        return status_page(self.http)

    def wait_for(self, condition: Callable[[], bool], seconds: float = 60.0) -> None:
        end = time.monotonic() + seconds
        while not condition():
            assert time.monotonic() < end, self.logs()
            time.sleep(0.02)

    def wait_for_events(self, n: int, seconds: float = 60.0) -> None:
        self.wait_for(lambda: (status := self.status()) is not None and status["events"]["processed"] >= n, seconds)

    def wait(self, process: subprocess.Popen[bytes], seconds: float = 90.0) -> int:
        try:
            return process.wait(seconds)
        except subprocess.TimeoutExpired:
            pytest.fail(f"process still runs after {seconds} s\n{self.logs()}")

    def logs(self) -> str:
        return "\n".join(f"--- {path.name}\n{path.read_text()[-3000:]}" for path in sorted(self.directory.glob("log*")))

    @property
    def wanted(self) -> list[int]:
        """Numbers of the events that the fake engine accepts, in order: every second one of a MEP."""
        return [number for number in range(self.meps * EVENTS) if number % EVENTS % 2]

    def kept_events(self) -> list[int]:
        """Numbers of the events in all files, in the order of the files."""
        return [
            int.from_bytes(record.banks()[0].payload[:8], "little")
            for path in sorted(self.output.glob("*.mdf"))
            for record in iter_records(path.read_bytes())
        ]


@pytest.fixture
def site(tmp_path: Path, request: pytest.FixtureRequest) -> Iterator[Site]:
    site = Site(tmp_path, getattr(request, "param", 1))
    yield site
    for process in site.processes:
        if process.poll() is None:
            process.kill()
            process.wait()


# As Site.wanted.
WANTED = {n for n in range(MEPS * EVENTS) if n % EVENTS % 2}


def test_sigterm_drains_the_node_and_leaves_whole_files_and_no_process(site: Site) -> None:
    node = site.start_node()
    feeder = site.start_feeder(1)
    site.wait_for_events(100)
    node.send_signal(signal.SIGTERM)
    assert site.wait(node) == 0, site.logs()
    assert not list(site.output.glob("*.part"))
    before = site.kept_events()
    assert len(before) == len(set(before)) >= 50
    # The feeder waits for the next session and gives it the rest, and only the rest.
    node = site.start_node()
    assert site.wait(feeder) == 0, site.logs()
    node.send_signal(signal.SIGTERM)
    assert site.wait(node) == 0, site.logs()
    kept = site.kept_events()
    assert len(kept) == len(set(kept))
    assert set(kept) == WANTED


def test_killing_the_node_leaves_each_event_exactly_once_in_the_files_of_both_sessions(site: Site) -> None:
    node = site.start_node()
    feeder = site.start_feeder(1)
    site.wait_for_events(100)
    node.kill()
    node.wait()
    node = site.start_node()
    assert site.wait(feeder) == 0, site.logs()
    status = site.status()
    assert status is not None
    assert closes(status["accounting"])
    node.send_signal(signal.SIGTERM)
    assert site.wait(node) == 0, site.logs()
    assert sorted(site.kept_events()) == sorted(WANTED)


@pytest.mark.parametrize("site", [2], indirect=True)
@pytest.mark.slow
def test_a_killed_feeder_restarts_and_every_fragment_is_accounted_for(site: Site) -> None:
    node = site.start_node()
    first, second = site.start_feeder(1), site.start_feeder(2)
    site.wait_for_events(100)
    second.kill()
    second.wait()
    second = site.start_feeder(2)
    assert site.wait(first) == 0, site.logs()
    assert site.wait(second) == 0, site.logs()
    status = site.status()
    assert status is not None
    assert closes(status["accounting"])
    meps = status["accounting"]["meps"]
    assert meps["opened"] == sum(meps[reason] for reason in CloseReason) == MEPS
    assert meps["complete"] > 0
    node.send_signal(signal.SIGTERM)
    assert site.wait(node) == 0, site.logs()
    assert len(site.kept_events()) == len(set(site.kept_events()))


def test_a_port_in_use_stops_the_start_with_a_message(site: Site) -> None:
    site.start_node()
    again = site.start("tests.daemon.node_process", str(site.config))
    assert site.wait(again) != 0
    assert "Address already in use" in site.logs()


def summary_of_demo(site: Site, *arguments: str) -> dict[str, Any]:
    result = site.directory / "demo.json"
    options = ("--backend", "cpu", "-o", str(site.output), "--json", str(result))
    demo = site.start("hltnode.daemon", "demo", *arguments, *options)
    assert site.wait(demo, 160.0) == 0, site.logs()
    summary: dict[str, Any] = json.loads(result.read_text())
    return summary


def test_the_demo_takes_simulated_events_to_decisions_and_its_accounting_closes(site: Site) -> None:
    summary = summary_of_demo(site, "-n", "60", "--feeders", "2", "--repeat", "2")
    assert summary["events"] == 120
    assert summary["accounting_closes"]
    assert summary["accounting"]["meps"]["complete"] == 2
    assert summary["metrics"]["hltnode_events_processed_total"] == 120


def test_the_demo_over_udp_decides_each_packet_first_and_shows_its_latency_by_stage(site: Site) -> None:
    """Nothing else lets a decision wait: its MEP is one packet, its batch does not fill up, and files come later."""
    summary = summary_of_demo(site, "--chain", "na62_rich", "-n", "160", "--repeat", "2")
    assert summary["transport"] == "udp"
    assert summary["accounting_closes"]
    # On a busy machine a datagram may be lost, and its events with it.
    assert summary["events"] + summary["lost"] == 320
    assert summary["accounting"]["meps"]["opened"] == summary["decisions"] >= 320 / 16 / 2
    assert summary["metrics"]["hltnode_decisions_sent_first_total"] >= summary["decisions"] / 2
    assert 0 < summary["latency_us"]["p50"] <= summary["latency_us"]["p99"]
    assert 0 <= summary["late"] <= summary["decisions"]
    assert set(summary["stages_us"]) == {"build", "seal", "queue", "compute", "gather", "write", "publish"}
    assert summary["stages_us"]["build"] > 0
    assert summary["files"] == {}
    assert "no file has the kept events" in site.logs()


def test_the_demo_has_no_more_feeders_than_the_events_have_sources(site: Site) -> None:
    summary = summary_of_demo(site, "--chain", "ccl", "-n", "20", "--feeders", "4", "--repeat", "1")
    assert (summary["events"], summary["feeders"], summary["sources"]) == (20, 2, 2)
    assert summary["accounting_closes"]
