"""A replay in parts of which one is killed, and the same input in other parts."""

from __future__ import annotations

import signal
import subprocess

import pytest

from tests.daemon.fakes import RUN
from tests.daemon.processes.test_processes import RATE, WANTED, Site, site

__all__ = ["site"]

pytestmark = [pytest.mark.process, pytest.mark.loopback]


def start_part(site: Site, part: str) -> subprocess.Popen[bytes]:
    return site.start(
        "hltnode.daemon", "replay", "--to", site.data, "--control", site.control, str(site.input),
        "--run", str(RUN), "--part", part, "--rate", str(RATE), "--name", "replay",
    )  # fmt: skip


@pytest.mark.expensive("runs several sets of feeder processes")
def test_a_killed_part_of_three_holds_up_no_two_parts_that_come_after_it(
    site: Site, monkeypatch: pytest.MonkeyPatch
) -> None:
    # Fewer MEPs than the run has: a floor that does not rise ends it.
    monkeypatch.setenv("HLTNODE_BUILDER__CLOSED_RING", "64")
    site.start_node()
    alone = start_part(site, "1/3")
    site.wait_for(lambda: (status := site.status()) is not None and status["waits_for"] is not None)
    status = site.status()
    assert status is not None
    assert status["waits_for"] == f"run {RUN} waits for feeders: 1 of 3 are connected; feeder replay:1/3 announces 3"
    alone.kill()
    alone.wait()
    parts = [start_part(site, part) for part in ("1/2", "2/2")]
    assert [site.wait(part) for part in parts] == [0, 0], site.logs()
    site.processes[0].send_signal(signal.SIGTERM)
    assert site.wait(site.processes[0]) == 0, site.logs()
    assert set(site.kept_events()) == WANTED
