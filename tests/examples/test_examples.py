"""The programs of examples/ fulfil their first line, on simulated events and with a real node."""

import json
import signal
import subprocess
import sys
import time
from collections.abc import Iterator
from pathlib import Path

import pytest
from typer.testing import CliRunner

from examples import feed_custom_data, process_events, read_accepted_events
from hltnode.daemon.cli import app
from hltnode.protocol.raw_data.mdf import iter_records
from tests.daemon.pages import metric, status_page
from tests.own_ports import CONTROL, DATA, DECISIONS, HTTP, OwnPorts

EXAMPLES = Path(__file__).resolve().parents[2] / "examples"
PULSER_LINE = '\n[[lines]]\ntype = "OdinEventType"\nname = "Hlt1Pulser"\nmask = 0x0400\n'
NO_VELO = "\n[sequence.missing_detectors]\nvelo = 0\n"
N_EVENTS = 60


@pytest.fixture(scope="module")
def sample(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Simulated events of the VELO."""
    path = tmp_path_factory.mktemp("simulated") / "minbias.mdf"
    arguments = ["simulate", "-n", str(N_EVENTS), "--seed", "1", "--detectors", "velo", "-o", str(path)]
    assert CliRunner().invoke(app, arguments).exit_code == 0
    return path


class RunningNode:
    """`hltnode serve` with examples/node.toml, and the menu of examples/trigger.toml with one additional line."""

    def __init__(self, folder: Path) -> None:
        self.ports = OwnPorts()
        self.output = folder / "output"
        self.trigger = folder / "trigger.toml"
        self.trigger.write_text((EXAMPLES / "trigger.toml").read_text() + PULSER_LINE + NO_VELO)
        (folder / "node.toml").write_text(self.ports.put_into((EXAMPLES / "node.toml").read_text()))
        self.log = folder / "node.log"
        with self.log.open("wb") as log:
            self.process = subprocess.Popen(
                [sys.executable, "-m", "hltnode.daemon", "serve", "--config", "node.toml"],
                cwd=folder, stdout=log, stderr=log,
            )  # fmt: skip
        end = time.monotonic() + 30.0
        while status_page(self.ports[HTTP]) is None:
            assert self.process.poll() is None, self.log.read_text()
            assert time.monotonic() < end, self.log.read_text()
            time.sleep(0.05)

    def endpoint(self, port: int) -> str:
        return f"tcp://127.0.0.1:{self.ports[port]}"

    def stop(self) -> list[Path]:
        """Drain the node; returns its files of accepted events."""
        self.process.send_signal(signal.SIGTERM)
        assert self.process.wait(30.0) == 0, self.log.read_text()
        return sorted(self.output.glob("*_accepted_*.mdf"))


@pytest.fixture
def node(tmp_path: Path) -> Iterator[RunningNode]:
    node = RunningNode(tmp_path)
    yield node
    if node.process.poll() is None:
        node.process.kill()
        node.process.wait()


def test_process_events_counts_what_hltnode_process_accepts(
    sample: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    trigger = EXAMPLES / "trigger.toml"
    process_events.main([str(sample), "--trigger", str(trigger)])
    printed = {
        row[0]: int(row[1]) for row in map(str.split, capsys.readouterr().out.splitlines()) if row[2] == "events,"
    }
    result = tmp_path / "out.json"
    arguments = ["process", str(sample), "--trigger", str(trigger), "--json", str(result)]
    assert CliRunner().invoke(app, arguments).exit_code == 0
    events = json.loads(result.read_text())["per_event"]
    expected = {line: sum(line in event["lines"] for event in events) for line in printed}
    assert set(printed) == {"Hlt1Passthrough", "Hlt1NDisplacedVelo", "Hlt1FourDisplacedVelo"}
    assert printed == expected
    assert printed["Hlt1NDisplacedVelo"] > 0


def test_process_events_takes_the_built_in_menu_without_a_trigger_configuration(
    sample: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    process_events.main([str(sample), "--sequence", "velo"])
    assert "Hlt1VeloMicroBias" in capsys.readouterr().out


@pytest.mark.process
@pytest.mark.loopback
def test_a_consumer_prints_the_decisions_that_stand_in_the_files_under_the_same_tck(
    node: RunningNode, sample: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    consumer = subprocess.Popen(
        [sys.executable, str(EXAMPLES / "decisions.py"), node.endpoint(DECISIONS),
         "--trigger", str(node.trigger), "--meps", "3"],
        stdout=subprocess.PIPE, text=True,
    )  # fmt: skip
    with consumer:
        assert consumer.stdout is not None
        assert consumer.stdout.readline().startswith("waiting for decisions")
        wait_for_subscription(node)
        feeding = CliRunner().invoke(
            app, ["replay", "--to", node.endpoint(DATA), str(sample), "--events-per-mep", "20"]
        )
        assert feeding.exit_code == 0, feeding.output
        decisions, _ = consumer.communicate(timeout=30.0)
    assert consumer.returncode == 0
    assert decisions.count("20 events, complete") == 3
    files = node.stop()
    capsys.readouterr()
    read_accepted_events.main([*map(str, files), "--trigger", str(node.trigger)])
    reports = capsys.readouterr().out.splitlines()
    by_line: dict[str, list[str]] = {}
    for row in decisions.splitlines():
        if row.startswith("  "):
            name, events = row.strip().split(": ")
            by_line.setdefault(name, []).extend(event for event in events.split() if event != "none")
    of_files: dict[str, list[str]] = {name: [] for name in by_line}
    for row in reports:
        words = row.replace(":", "").replace(",", "").split()
        for name in words[6:]:
            of_files[name].append(words[3])
    assert by_line == of_files
    assert by_line["Hlt1NDisplacedVelo"]
    with pytest.raises(SystemExit, match="has TCK"):
        read_accepted_events.main([*map(str, files), "--trigger", str(EXAMPLES / "trigger.toml")])


@pytest.mark.process
@pytest.mark.loopback
def test_the_events_of_a_small_experiment_are_built_and_its_pulser_events_are_kept(
    node: RunningNode, capsys: pytest.CaptureFixture[str]
) -> None:
    feed_custom_data.main([node.endpoint(DATA), node.endpoint(CONTROL), "--meps", "4"])
    assert "4 MEPs, 400 events, 8 fragments: acknowledged" in capsys.readouterr().out
    status = status_page(node.ports[HTTP])
    assert status is not None
    assert status["sources"] == 2
    assert status["events"]["accepted_by_line"]["Hlt1Pulser"] == 16
    files = node.stop()
    read_accepted_events.main([*map(str, files), "--trigger", str(node.trigger)])
    kept = [row for row in capsys.readouterr().out.splitlines() if "Hlt1Pulser" in row]
    assert [int(row.split()[3].rstrip(":")) for row in kept] == list(range(0, 400, 25))
    heights = [
        bank.payload
        for path in files
        for record in iter_records(path.read_bytes())
        for bank in record.banks()
        if bank.type == feed_custom_data.DETECTOR_BANK
    ]
    assert len(heights) >= 16
    assert all(len(payload) == 64 for payload in heights)


def test_a_file_without_decision_reports_is_refused_with_the_bank_that_it_lacks(sample: Path) -> None:
    with pytest.raises(SystemExit, match="no HLT_DEC_REPORTS bank"):
        read_accepted_events.main([str(sample), "--trigger", str(EXAMPLES / "trigger.toml")])


def wait_for_subscription(node: RunningNode) -> None:
    """Wait until the consumer's subscription has reached the node; earlier decisions would not reach the consumer."""
    end = time.monotonic() + 20.0
    while metric(node.ports[HTTP], "hltnode_decision_subscriptions") < 1:
        assert time.monotonic() < end, node.log.read_text()
        time.sleep(0.05)
