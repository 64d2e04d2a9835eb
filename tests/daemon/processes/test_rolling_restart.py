"""Three real nodes of a farm are drained and started again one by one, with another configuration, under one feeder."""

import json
import signal
import subprocess
from collections import Counter
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from typer.testing import CliRunner

from hltnode.daemon.cli import app
from hltnode.daemon.event_building.accounting import closes
from hltnode.processing.framework.event_files import read_events
from hltnode.protocol.raw_data.bank_types import BankType
from hltnode.protocol.raw_data.odin import decode_odin
from tests.daemon.pages import all_metrics
from tests.daemon.processes.test_processes import Site

pytestmark = [pytest.mark.process, pytest.mark.loopback, pytest.mark.slow, pytest.mark.timeout(1200)]

EVENTS = 100
PER_MEP = 5
RATE = 100
"""Events per second, low enough for one node."""
NODES = "abc"
TRIGGER = """
[sequence]
name = "velo"

[[lines]]
type = "Passthrough"
name = "Hlt1Passthrough"
"""


class FarmNode(Site):
    """A node of the farm, as `hltnode serve` runs it."""

    def __init__(self, directory: Path) -> None:
        directory.mkdir()
        super().__init__(directory, feeders=1)
        (directory / "trigger.toml").write_text(TRIGGER)
        text = self.config.read_text().replace('name = "testnode"', f'name = "{directory.name}"')
        text = text.replace("[pipeline]", '[pipeline]\nbackend = "cpu"\nthreads = 1\nslots = 3')
        for size, larger in (("65536", "16777216"), ("524288", "33554432"), ("timeout_ms = 400", "timeout_ms = 5000")):
            text = text.replace(size, larger)
        text += f'[trigger]\nfile = "{directory}/trigger.toml"\n[log]\nformat = "json"\n'
        self.config.write_text(text)

    def serve(self) -> subprocess.Popen[bytes]:
        node = self.start("hltnode.daemon", "serve", "--config", str(self.config))
        self.wait_for(lambda: (status := self.status()) is not None and status["state"] == "running", 180)
        return node

    def processed(self) -> int:
        status = self.status()
        return 0 if status is None else int(status["events"]["processed"])

    def log_lines(self, event: str) -> list[dict[str, Any]]:
        lines = [line for path in sorted(self.directory.glob("log*")) for line in path.read_text().splitlines()]
        return [found for line in lines if line.startswith("{") and (found := json.loads(line))["event"] == event]

    def accepted(self) -> Iterator[int]:
        """The numbers of the events of all files."""
        for path in sorted(self.output.glob("*_accepted_*.mdf")):
            for banks in read_events(path):
                [odin] = [decode_odin(bank) for bank in banks if bank.type == BankType.ODIN]
                yield odin.event_id


@pytest.fixture
def farm(tmp_path: Path) -> Iterator[list[FarmNode]]:
    nodes = [FarmNode(tmp_path / name) for name in NODES]
    yield nodes
    for node in nodes:
        for process in node.processes:
            if process.poll() is None:
                process.kill()
                process.wait()


def drain(node: FarmNode, process: subprocess.Popen[bytes], *, pause_first: bool) -> dict[str, Any]:
    """Stop a node as an operator does; returns its last status before."""
    if pause_first:
        result = CliRunner().invoke(app, ["ctl", "pause", "--to", node.control, "--timeout", "30"])
        assert result.exit_code == 0, result.output
    status = node.status()
    assert status is not None
    process.send_signal(signal.SIGTERM)
    assert node.wait(process, 120) == 0, node.logs()
    return status


def test_restarts_of_three_nodes_one_by_one_lose_or_duplicate_no_event(farm: list[FarmNode], tmp_path: Path) -> None:
    a = farm[0]
    events = tmp_path / "events.mdf"
    made = a.start("hltnode.daemon", "simulate", "-n", str(EVENTS), "--detectors", "velo", "-o", str(events))
    assert a.wait(made, 300) == 0, a.logs()
    running = [node.serve() for node in farm]
    ends = [part for node in farm for part in ("--to", node.data, "--control", node.control)]
    report = tmp_path / "report.json"
    feeder = a.start(
        "hltnode.daemon", "replay", str(events), *ends, "--events-per-mep", str(PER_MEP), "--loop",
        "--rate", str(RATE), "--memory", str(tmp_path / "memory"), "--json", str(report),
    )  # fmt: skip
    for place, node in enumerate(farm):
        node.wait_for(lambda: node.processed() >= 2 * PER_MEP, 180)  # noqa: B023
        others = [other for other in farm if other is not node]
        before = sum(other.processed() for other in others)
        drain(node, running[place], pause_first=place == 1)
        # The feeder continues with the other nodes while this node is down.
        node.wait_for(lambda: sum(o.processed() for o in others) >= before + 4 * PER_MEP, 180)  # noqa: B023
        assert feeder.poll() is None, a.logs()
        node.config.write_text(node.config.read_text().replace("slots = 3", "slots = 4"))
        running[place] = node.serve()
        assert [line["slots"] for line in node.log_lines("ready")] == [3, 4]
        # And with this one, when it is back.
        node.wait_for(lambda: node.processed() >= 2 * PER_MEP, 180)  # noqa: B023
    feeder.send_signal(signal.SIGINT)
    assert a.wait(feeder, 300) == 0, a.logs()
    fed = json.loads(report.read_text())
    assert fed["unacknowledged"] == 0
    for node, process in zip(farm, running, strict=True):
        status = node.status()
        assert status is not None
        assert closes(status["accounting"])
        print(
            node.directory.name, "dead time [s]", {k: v for k, v in all_metrics(node.http).items() if "dead_time" in k}
        )
        process.send_signal(signal.SIGTERM)
        assert node.wait(process, 120) == 0, node.logs()
    kept = Counter(number for node in farm for number in node.accepted())
    print("events in files", {node.directory.name: len(list(node.accepted())) for node in farm}, "feeder", fed)
    assert sum(kept.values()) == fed["events"]
    # The input was fed several times, the last time in part.
    assert len(kept) == EVENTS
    assert max(kept.values()) - min(kept.values()) <= 1
    # No file waits for anything: each has its final name.
    assert not [path for node in farm for path in node.output.glob("*.part")]
    for node in farm:
        for event in ("ready", "draining", "stopped"):
            print(node.directory.name, event, [line["timestamp"] for line in node.log_lines(event)])
