"""`hltnode replay` in operation: missing node, pause, loop, several processes."""

import json
import signal
import subprocess
import time
from pathlib import Path
from typing import Any

import pytest

from tests.daemon.fakes import RUN, SOURCES
from tests.daemon.processes.test_processes import EVENTS, MEPS, Site, site

__all__ = ["site"]

pytestmark = [pytest.mark.process, pytest.mark.loopback]


def replay(site: Site, *arguments: str) -> subprocess.Popen[bytes]:
    return site.start(
        "hltnode.daemon", "replay", str(site.input), "--to", site.data, "--control", site.control, "--run", str(RUN),
        "--json", str(site.directory / "report.json"), *arguments,
    )  # fmt: skip


def report_of(site: Site) -> dict[str, Any]:
    report: dict[str, Any] = json.loads((site.directory / "report.json").read_text())
    return report


def processed(site: Site) -> int:
    status = site.status()
    assert status is not None
    return int(status["events"]["processed"])


def test_a_missing_node_is_named_every_few_seconds_until_it_answers(site: Site) -> None:
    feeder = replay(site, "--wait")
    log = site.directory / "log0"
    site.wait_for(lambda: f"waiting for the node at {site.control}: no welcome for" in log.read_text())
    site.start_node()
    assert site.wait(feeder) == 0, site.logs()
    assert f"the node at {site.control} answers" in log.read_text()
    assert report_of(site)["input"]["files"] == [str(site.input)]


def test_a_looped_replay_pauses_resumes_and_ends_with_everything_acknowledged(site: Site) -> None:
    node = site.start_node()
    feeder = replay(site, "--loop", "--rate", "2000")
    site.wait_for_events(MEPS * EVENTS + 1)
    feeder.send_signal(signal.SIGUSR1)
    last = -1
    while last != (last := processed(site)):
        time.sleep(0.5)
    feeder.send_signal(signal.SIGCONT)
    site.wait_for_events(last + 100)
    feeder.send_signal(signal.SIGINT)
    assert site.wait(feeder) == 0, site.logs()
    report = report_of(site)
    assert report["events"] == processed(site) > MEPS * EVENTS
    assert (report["unacknowledged"], report["refused"], report["error"]) == (0, {}, "")
    status = site.status()
    assert status is not None
    assert status["accounting"]["meps"]["complete"] == report["meps"]
    assert "paused" in site.logs()
    node.send_signal(signal.SIGTERM)
    assert site.wait(node) == 0


@pytest.mark.timeout(600)
def test_several_jobs_send_each_their_sources_and_end_a_loop_after_the_same_mep(tmp_path: Path) -> None:
    site = Site(tmp_path, 2)
    try:
        node = site.start_node()
        feeder = replay(site, "--jobs", "2", "--loop", "--rate", "2000")
        # Three processes start, each of which imports for seconds of processor time.
        site.wait_for_events(MEPS * EVENTS + 1, 180.0)
        feeder.send_signal(signal.SIGINT)
        assert site.wait(feeder) == 0, site.logs()
        report = report_of(site)
        assert report["fragments"] == report["meps"] * len(SOURCES) + report["resent"]
        status = site.status()
        assert status is not None
        meps = status["accounting"]["meps"]
        assert report["meps"] == meps["complete"] == meps["opened"] > MEPS
        node.send_signal(signal.SIGTERM)
        assert site.wait(node) == 0
    finally:
        for process in site.processes:
            if process.poll() is None:
                process.kill()
                process.wait()
