"""A rolling update as Kubernetes does it, with the signals and probes of a kubelet, on real processes."""

import json
import signal
import subprocess
import urllib.error
import urllib.request
from pathlib import Path
from typing import Any

import pytest

from hltnode.daemon.commands.farm.local.nodes import LocalFeeder, LocalNode
from hltnode.daemon.commands.farm.local.processes import processes
from hltnode.daemon.event_building.accounting import closes
from hltnode.protocol.raw_data.mep import encode_mep
from tests.daemon.fakes import RUN, synthetic_meps
from tests.deploy.tools import DEPLOY, read_yaml
from tests.farm.paced_node import FACTOR, LAST_STATUS
from tests.farm.real import CHAIN, EVENTS_PER_MEP, real_nodes, wait_for

pytestmark = [pytest.mark.process, pytest.mark.loopback, pytest.mark.timeout(900)]

MEPS = 50
RATE = 400


class Kubelet:
    """Updates a pod of the chart."""

    def __init__(self) -> None:
        self._grace_seconds = read_yaml(DEPLOY / "helm" / "hltnode" / "values.yaml")["drainSeconds"]

    def update(self, node: LocalNode) -> None:
        """Stop the process within its grace, start it with another configuration, and wait for its probes."""
        assert node.process is not None
        node.process.send_signal(signal.SIGTERM)
        try:
            assert node.process.wait(self._grace_seconds) == 0, node.log.read_text()
        except subprocess.TimeoutExpired:
            node.kill()
            pytest.fail(f"{node.name} was killed after its grace:\n{node.log.read_text()}")
        text = node.config.read_text()
        assert "slots = 3\n" in text
        node.config.write_text(text.replace("slots = 3\n", "slots = 4\n"))
        node.start()
        for probe in ("/healthz", "/readyz"):
            wait_for(lambda: _is_ok(node.url + probe))  # noqa: B023


def _is_ok(url: str) -> bool:
    try:
        with urllib.request.urlopen(url, timeout=5) as answer:
            return bool(answer.status == 200)
    except (urllib.error.URLError, TimeoutError, ConnectionError):
        return False


def processed(node: LocalNode) -> int:
    status = node.status()
    return 0 if status is None else int(status["events"]["processed"])


def last_statuses(node: LocalNode) -> list[dict[str, Any]]:
    return [json.loads(path.read_text()) for path in node.directory.glob(f"{LAST_STATUS}*.json")]


@pytest.mark.expensive("restarts each node of a farm under load")
def test_a_rolling_update_under_load_leaves_no_mep_incomplete_and_moves_none(tmp_path: Path) -> None:
    events = tmp_path / "loop.mep"
    events.write_bytes(
        b"".join(encode_mep(list(mep.mfps.values())) for mep in synthetic_meps(MEPS, events=EVENTS_PER_MEP))
    )
    with processes() as started, real_nodes(tmp_path, 3, started) as nodes:
        for node in nodes:
            (node.directory / FACTOR).write_text("0.1")
        feeder = LocalFeeder(tmp_path / "feeder", started)
        feeder.start(nodes, events, CHAIN, RUN, "--loop", "--rate", str(RATE))
        kubelet = Kubelet()
        # A StatefulSet begins with the last pod.
        for node in reversed(nodes):
            wait_for(lambda: all(processed(each) for each in nodes))
            kubelet.update(node)
            wait_for(lambda: processed(node))  # noqa: B023
            assert feeder.is_alive, feeder.log.read_text()
        feeder.end_input()
        report = feeder.report()
        for node in nodes:
            node.stop()
    statuses = [status for node in nodes for status in last_statuses(node)]
    assert len(statuses) == 2 * len(nodes)
    for status in statuses:
        meps = status["accounting"]["meps"]
        assert closes(status["accounting"])
        assert meps["opened"] == meps["complete"] > 0
    assert (report["unacknowledged"], report["reassigned"], report["refused"], report["error"]) == (0, 0, {}, "")
    assert sum(status["events"]["processed"] for status in statuses) == report["events"]
    assert sum(status["accounting"]["meps"]["complete"] for status in statuses) == report["meps"]
