"""Real nodes and feeder processes: one of two nodes is killed and comes back, and every event is in one file once."""

import signal
import subprocess
from collections.abc import Iterator
from pathlib import Path

import pytest

from hltnode.daemon.commands.demo_processes import free_ports
from hltnode.daemon.event_building.accounting import closes
from tests.daemon.fakes import RUN
from tests.daemon.processes.test_processes import WANTED, Site

pytestmark = [pytest.mark.process, pytest.mark.loopback]

FEEDERS = 2


@pytest.fixture
def sites(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[tuple[Site, Site]]:
    # The two feeder processes do not run in step on a busy machine.
    monkeypatch.setenv("HLTNODE_BUILDER__MEP_TIMEOUT_MS", "5000")
    for name in "ab":
        (tmp_path / name).mkdir()
    pair = Site(tmp_path / "a", FEEDERS), Site(tmp_path / "b", FEEDERS)
    yield pair
    for site in pair:
        for process in site.processes:
            if process.poll() is None:
                process.kill()
                process.wait()


def start_feeders(a: Site, b: Site, rate: int) -> list[subprocess.Popen[bytes]]:
    supervisor = f"tcp://127.0.0.1:{free_ports(1)[0]}"
    return [
        a.start(
            "hltnode.daemon", "replay", "--to", a.data, "--control", a.control, "--to", b.data, "--control", b.control,
            "--supervisor", supervisor, str(a.input), "--run", str(RUN), "--rate", str(rate),
            "--part", f"{part}/{FEEDERS}",
        )
        for part in range(1, FEEDERS + 1)
    ]  # fmt: skip


def processed(site: Site) -> int:
    status = site.status()
    return 0 if status is None else status["events"]["processed"]


def stop(*sites: Site) -> None:
    for site in sites:
        status = site.status()
        assert status is not None, site.logs()
        assert closes(status["accounting"])
        node = next(process for process in reversed(site.processes) if "node_process" in str(process.args))
        node.send_signal(signal.SIGTERM)
        assert site.wait(node) == 0, site.logs()


@pytest.mark.slow
def test_every_event_of_a_killed_node_that_restarts_at_once_is_kept_once(sites: tuple[Site, Site]) -> None:
    a, b = sites
    killed = a.start_node()
    b.start_node()
    feeders = start_feeders(a, b, rate=150)
    a.wait_for_events(80)
    killed.kill()
    killed.wait()
    a.start_node()
    a.wait_for_events(1)
    for feeder in feeders:
        assert a.wait(feeder) == 0, a.logs() + b.logs()
    stop(a, b)
    assert sorted(a.kept_events() + b.kept_events()) == sorted(WANTED), a.logs() + b.logs()


@pytest.mark.expensive("waits until the MEPs of a killed node have moved")
def test_a_killed_node_loses_its_meps_to_the_other_one_and_no_event_is_kept_twice(sites: tuple[Site, Site]) -> None:
    a, b = sites
    killed = a.start_node()
    b.start_node()
    # Slow enough that the node is back before their end, also on a busy machine.
    feeders = start_feeders(a, b, rate=60)
    a.wait_for_events(80)
    # The node is stopped before the kill, so that it holds unacknowledged MEPs.
    killed.send_signal(signal.SIGSTOP)
    b.wait_for_events(processed(b) + 60)
    killed.kill()
    killed.wait()
    # The feeders continue with the other node, and send it the unacknowledged MEPs of the dead node.
    a.wait_for(lambda: "node_lost" in a.logs())
    seen = processed(b)
    b.wait_for_events(seen + 40)
    a.start_node()
    for feeder in feeders:
        assert a.wait(feeder) == 0, a.logs() + b.logs()
    assert "did not return" not in a.logs()
    stop(a, b)
    assert sorted(a.kept_events() + b.kept_events()) == sorted(WANTED), a.logs() + b.logs()
