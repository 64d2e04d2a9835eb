"""Real feeder processes out of step: slow, late, stopped; and a stopped node."""

import signal
import subprocess
import time
from typing import Any

import pytest

from tests.daemon.fakes import RUN
from tests.daemon.processes.test_processes import MEPS, WANTED, Site, site

__all__ = ["site"]

pytestmark = [
    pytest.mark.process,
    pytest.mark.loopback,
    pytest.mark.timeout(300),
    pytest.mark.parametrize("site", [2], indirect=True),
]


def feed(site: Site, number: int, *options: str) -> subprocess.Popen[bytes]:
    return site.start(
        "hltnode.daemon", "replay", "--to", site.data, "--control", site.control, str(site.input),
        "--run", str(RUN), "--part", f"{number}/{site.feeders}", *options,
    )  # fmt: skip


def finish(site: Site, *feeders: subprocess.Popen[bytes]) -> dict[str, Any]:
    """The classes of MEPs after all feeders have ended, and the node was stopped in order."""
    for feeder in feeders:
        assert site.wait(feeder, 120.0) == 0, site.logs()
    status = site.status()
    assert status is not None
    site.processes[0].send_signal(signal.SIGTERM)
    assert site.wait(site.processes[0]) == 0, site.logs()
    assert sorted(site.kept_events()) == sorted(WANTED)
    meps: dict[str, Any] = status["accounting"]["meps"]
    return meps


def test_a_feeder_that_is_slower_than_the_other_holds_it_back_and_costs_no_mep(site: Site) -> None:
    site.start_node()
    fast, slow = feed(site, 1), feed(site, 2, "--rate", "300")
    meps = finish(site, fast, slow)
    assert meps["complete"] == meps["opened"] == MEPS


@pytest.mark.slow
def test_feeders_of_different_rates_that_start_seconds_apart_cost_no_mep(site: Site) -> None:
    site.start_node()
    first = feed(site, 1, "--rate", "600")
    time.sleep(2.0)
    second = feed(site, 2, "--rate", "400")
    meps = finish(site, first, second)
    assert meps["complete"] == meps["opened"] == MEPS


@pytest.mark.slow
def test_a_feeder_that_is_stopped_for_less_than_its_hellos_may_fail_costs_no_mep(site: Site) -> None:
    site.start_node()
    first, second = feed(site, 1, "--rate", "600"), feed(site, 2, "--rate", "600")
    site.wait_for_events(100)
    second.send_signal(signal.SIGSTOP)
    time.sleep(2.5)
    second.send_signal(signal.SIGCONT)
    meps = finish(site, first, second)
    assert meps["complete"] == meps["opened"] == MEPS


@pytest.mark.parametrize(
    "seconds", [1.0, *(pytest.param(seconds, marks=pytest.mark.slow) for seconds in (0.1, 6.0, 30.0))]
)
def test_a_node_that_is_stopped_and_continued_builds_every_mep_complete(site: Site, seconds: float) -> None:
    node = site.start_node()
    first, second = feed(site, 1, "--rate", "600"), feed(site, 2, "--rate", "600")
    site.wait_for_events(100)
    for _ in range(3 if seconds < 5 else 1):
        node.send_signal(signal.SIGSTOP)
        time.sleep(seconds)
        node.send_signal(signal.SIGCONT)
        time.sleep(0.2)
    meps = finish(site, first, second)
    assert meps["complete"] == meps["opened"] == MEPS
