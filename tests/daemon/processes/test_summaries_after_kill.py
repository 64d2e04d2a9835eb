"""Summaries of runs after SIGKILL of the node: they name every file once and count what is in the files."""

import json
import signal
import subprocess
from pathlib import Path
from typing import Any

import pytest

from hltnode.daemon.common.vocabulary import EventStream
from hltnode.protocol.raw_data.mdf import iter_records
from tests.daemon.fakes import RUN
from tests.daemon.processes.test_processes import WANTED, Site, site

__all__ = ["site"]

pytestmark = [pytest.mark.process, pytest.mark.loopback]


def summaries(site: Site) -> list[dict[str, Any]]:
    return [json.loads(path.read_text()) for path in sorted(site.output.glob("*_summary*.json"))]


def on_disk(site: Site) -> dict[str, dict[str, int]]:
    """Files, events and bytes of the run by stream, counted in the files."""
    found = {}
    for stream in EventStream:
        contents = [path.read_bytes() for path in site.output.glob(f"testnode_*_{RUN:010d}_{stream}_*.mdf")]
        events = sum(1 for content in contents for _ in iter_records(content))
        found[stream.value] = {"files": len(contents), "events": events, "bytes": sum(map(len, contents))}
    return found


def sizes(paths: list[Path]) -> dict[str, int]:
    return {path.name: path.stat().st_size for path in paths}


KILLS = 2
START_SECONDS = 200.0
"""Longest start of a process, on a machine with a lot of other work."""
RATE = 150
"""Events per second: eight seconds, so that a node on a busy machine is killed before the end of the feed."""


def start_node(site: Site) -> subprocess.Popen[bytes]:
    """A node that answers."""
    node = site.start("tests.daemon.node_process", str(site.config))
    site.wait_for(lambda: site.status() is not None, START_SECONDS)
    return node


def wait_for_events(site: Site, n: int) -> None:
    def has_them() -> bool:
        status = site.status()
        return status is not None and status["events"]["processed"] >= n

    site.wait_for(has_them, START_SECONDS)


@pytest.mark.slow
@pytest.mark.timeout(600)
def test_the_summary_agrees_with_the_files_after_the_node_was_killed_twice(site: Site) -> None:
    node = start_node(site)
    feeder = site.start(
        "hltnode.daemon", "replay", "--to", site.data, "--control", site.control, str(site.input),
        "--run", str(RUN), "--rate", str(RATE),
    )  # fmt: skip
    for _ in range(KILLS):
        # In each session: a killed one leaves events behind.
        wait_for_events(site, 100)
        node.kill()
        assert site.wait(node) == -signal.SIGKILL
        assert summaries(site) == []
        node = start_node(site)
    assert site.wait(feeder, START_SECONDS) == 0, site.logs()
    node.send_signal(signal.SIGTERM)
    assert site.wait(node) == 0, site.logs()
    files = sorted(site.output.glob("*.mdf"))
    assert len(files) == KILLS + 1
    [summary] = summaries(site)
    assert (summary["run"], summary["ended"], summary["accounting_closes"]) == (RUN, "confirmed", True)
    assert summary["stored"] == on_disk(site)
    assert summary["stored"][EventStream.ACCEPTED]["events"] == len(WANTED) == len(set(site.kept_events()))
    assert {**summary["files_of_killed_sessions"], **summary["files"]} == sizes(files)
    assert len(summary["files"]) == 1
    assert len(summary["files_of_killed_sessions"]) == KILLS
    # The counters are those of the last session alone; only `stored` has all.
    assert 0 < summary["events"]["accepted"] < len(WANTED)
