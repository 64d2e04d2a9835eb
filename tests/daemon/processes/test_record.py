"""`hltnode record`: a replayed recording gets the same decisions."""

import signal
import subprocess
import sys
import time
from collections.abc import Iterator
from pathlib import Path

import pytest
from typer.testing import CliRunner

from hltnode.client import DecisionSubscriber, MepDecision
from hltnode.daemon.cli import app
from hltnode.daemon.commands.demo_processes import free_ports
from hltnode.daemon.replay.mep_source import Packing, meps_of_files
from hltnode.processing.framework.event_files import read_meps
from hltnode.processing.lhcb.readout import LHCB_READOUT
from tests.daemon.pages import metric
from tests.examples.test_examples import RunningNode, sample
from tests.own_ports import DATA, DECISIONS, HTTP

__all__ = ["sample"]

pytestmark = [pytest.mark.process, pytest.mark.loopback]

MEPS, EVENTS = 3, 20


@pytest.fixture
def tap(monkeypatch: pytest.MonkeyPatch) -> str:
    endpoint = f"tcp://127.0.0.1:{free_ports(1)[0]}"
    monkeypatch.setenv("HLTNODE_TAP__ENDPOINT", endpoint)
    return endpoint


@pytest.fixture
def node(tmp_path: Path, tap: str) -> Iterator[RunningNode]:
    node = RunningNode(tmp_path)
    yield node
    if node.process.poll() is None:
        node.process.kill()
        node.process.wait()


def wait_for(condition: object, node: RunningNode) -> None:
    assert callable(condition)
    end = time.monotonic() + 30.0
    while not condition():
        assert time.monotonic() < end, node.log.read_text()
        time.sleep(0.05)


def replayed(node: RunningNode, decisions: DecisionSubscriber, *arguments: str) -> list[MepDecision]:
    result = CliRunner().invoke(app, ["replay", *arguments, "--to", node.endpoint(DATA)])
    assert result.exit_code == 0, result.output + node.log.read_text()
    return sorted((decisions.receive(10.0) for _ in range(MEPS)), key=lambda decision: decision.mep)


def test_a_recorded_input_equals_the_original_and_gets_the_same_decisions(
    node: RunningNode, tap: str, sample: Path, tmp_path: Path
) -> None:
    recording = tmp_path / "incident"
    with DecisionSubscriber(node.endpoint(DECISIONS)) as decisions:
        recorder = subprocess.Popen(
            [sys.executable, "-m", "hltnode.daemon", "record", str(recording), "--from", tap, "--meps", str(MEPS)],
            stdout=subprocess.PIPE, text=True,
        )  # fmt: skip
        with recorder:
            wait_for(lambda: "recorders" in node.log.read_text(), node)
            wait_for(lambda: metric(node.ports[HTTP], "hltnode_decision_subscriptions") >= 1, node)
            first = replayed(node, decisions, str(sample), "--events-per-mep", str(EVENTS))
            printed, _ = recorder.communicate(timeout=30.0)
        assert recorder.returncode == 0
        assert f"{MEPS} MEPs, {MEPS * EVENTS} events" in printed
        files = sorted(recording.iterdir())
        assert [path.suffix for path in files] == [".mep"]
        second = replayed(node, decisions, str(recording))
        assert decisions.missed == 0
    sent = meps_of_files([sample], LHCB_READOUT, Packing(events_per_mep=EVENTS, max_fragment_bytes=1 << 24))
    for mep, recorded in zip(sent, read_meps(files[0]), strict=True):
        assert {m.source_id: bytes(m.view) for m in recorded.mfps} == {s: bytes(m) for s, m in mep.mfps.items()}
    for before, after in zip(first, second, strict=True):
        assert (after.run, after.mep, after.first_event) == (before.run, before.mep, before.first_event)
        assert (after.accepted, after.lines, after.flags) == (before.accepted, before.lines, before.flags)
    assert any(any(decision.accepted) for decision in first)


def test_a_port_other_than_the_tap_is_an_error_and_a_silent_tap_is_not(
    node: RunningNode, tap: str, tmp_path: Path
) -> None:
    def record(endpoint: str, *options: str) -> tuple[int, str]:
        result = CliRunner().invoke(app, ["record", str(tmp_path / "r"), "--from", endpoint, *options])
        return result.exit_code, result.output

    code, printed = record(node.endpoint(DECISIONS))
    assert (code, "expected the tap of a node (tap.endpoint)" in " ".join(printed.split())) == (2, True), printed
    # Longer than a recorder waits for the answer of a tap.
    code, printed = record(tap, "--seconds", "4")
    assert (code, "0 MEPs, 0 events" in printed) == (0, True), printed


def test_a_recorder_ends_with_whole_files_when_it_is_interrupted(tap: str, tmp_path: Path) -> None:
    recorder = subprocess.Popen(
        [sys.executable, "-m", "hltnode.daemon", "record", str(tmp_path / "r"), "--from", tap, "--wait"],
        stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True,
    )  # fmt: skip
    with recorder:
        assert recorder.stderr is not None
        assert recorder.stderr.readline().startswith("recording from")
        recorder.send_signal(signal.SIGINT)
        printed, _ = recorder.communicate(timeout=30.0)
    assert recorder.returncode == 0
    assert printed.startswith("0 MEPs, 0 events")
