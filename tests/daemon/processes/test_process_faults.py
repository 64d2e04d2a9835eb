"""Real processes under faults: stopped and continued, out of file descriptors, fed by feeders with injected faults."""

import json
import signal
import socket
import subprocess
import sys
import time

import psutil
import pytest

from hltnode.daemon.event_building.accounting import closes
from tests.daemon.processes.test_processes import MEPS, RATE, ROOT, WANTED, Site, site

__all__ = ["site"]

pytestmark = [pytest.mark.process, pytest.mark.loopback]


def feed_with_faults(site: Site, faults: str, *, seed: int) -> tuple[str, ...]:
    """The command line of a feeder that has all sources."""
    return (
        "hltnode.daemon", "replay", "--to", site.data, "--control", site.control, str(site.input),
        "--run", "42", "--rate", str(RATE), "--fault", faults, "--seed", str(seed),
        "--json", str(site.directory / f"report{seed}.json"),
    )  # fmt: skip


def stop_and_read(site: Site) -> list[int]:
    site.processes[0].send_signal(signal.SIGTERM)
    assert site.wait(site.processes[0]) == 0, site.logs()
    return site.kept_events()


@pytest.mark.slow
def test_a_rehearsal_prints_its_faults_and_every_event_is_kept_once(site: Site) -> None:
    site.start_node()
    faults = "drop=0.01,duplicate=0.02,reorder=0.05,corrupt=0.01,delay=0.01"
    feeder = site.start(*feed_with_faults(site, faults, seed=3))
    exit_code = site.wait(feeder)
    report = json.loads((site.directory / "report3.json").read_text())
    # A delayed fragment may come after its MEP was closed; nothing else is left over.
    assert exit_code == (1 if report["refused"] else 0), site.logs()
    assert report["refused"].keys() <= {"late"}
    assert report["unacknowledged"] == 0
    assert report["meps"] == MEPS
    assert all(report["injected"][name] > 0 for name in ("drop", "duplicate", "reorder", "corrupt", "delay"))
    assert f"injected: {report['injected']['drop']} drop, " in site.logs()
    status = site.status()
    assert status is not None
    assert closes(status["accounting"])
    kept = stop_and_read(site)
    assert len(kept) == len(set(kept))
    assert set(kept) >= WANTED


def test_kill_after_kills_the_feeder_and_its_successor_finishes_the_work(
    site: Site, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("TEST_SILENT_SECONDS", "40")
    site.start_node()
    feeder = site.start(*feed_with_faults(site, "kill-after=200", seed=1))
    assert site.wait(feeder) == -signal.SIGKILL
    assert not (site.directory / "report1.json").exists()
    # At once: of its last MEP a fragment may have died with it, and the node waits some seconds for that.
    assert site.wait(site.start_feeder(1)) == 0, site.logs()
    kept = stop_and_read(site)
    assert len(kept) == len(set(kept))
    assert set(kept) >= WANTED


@pytest.mark.parametrize("site", [2], indirect=True)
def test_a_stopped_feeder_costs_timeouts_and_nothing_else(site: Site) -> None:
    site.start_node()
    first, second = site.start_feeder(1), site.start_feeder(2)
    site.wait_for_events(100)
    second.send_signal(signal.SIGSTOP)
    site.wait_for(lambda: (status := site.status()) is not None and status["accounting"]["meps"]["timeout"] > 3)
    second.send_signal(signal.SIGCONT)
    assert site.wait(first) == 0, site.logs()
    # Its fragments came after the close of their MEPs, so the source is not silent.
    assert site.wait(second) == 1, site.logs()
    assert "MEPs, late" in site.logs()
    status = site.status()
    assert status is not None
    assert closes(status["accounting"])
    assert status["accounting"]["meps"]["complete"] > 0
    kept = stop_and_read(site)
    assert len(kept) == len(set(kept))
    assert set(kept) >= WANTED


@pytest.mark.slow
def test_a_stopped_node_continues_where_it_was(site: Site) -> None:
    node = site.start_node()
    feeder = site.start_feeder(1)
    site.wait_for_events(100)
    node.send_signal(signal.SIGSTOP)
    time.sleep(1.0)
    node.send_signal(signal.SIGCONT)
    assert site.wait(feeder) == 0, site.logs()
    kept = stop_and_read(site)
    assert len(kept) == len(set(kept))
    assert set(kept) >= WANTED


@pytest.mark.skipif(sys.platform != "linux", reason="prlimit is Linux'")
def test_a_node_without_file_descriptors_continues_and_accepts_connections_later(site: Site) -> None:
    node = site.start_node()
    feeder = site.start_feeder(1)
    site.wait_for_events(50)
    process = psutil.Process(node.pid)
    process.rlimit(psutil.RLIMIT_NOFILE, (process.num_fds() + 5, 4096))
    strangers = [socket.create_connection(("127.0.0.1", site.http), timeout=5) for _ in range(30)]
    time.sleep(0.5)
    for stranger in strangers:
        stranger.close()
    process.rlimit(psutil.RLIMIT_NOFILE, (4096, 4096))
    assert site.wait(feeder) == 0, site.logs()
    site.wait_for(lambda: site.status() is not None)
    kept = stop_and_read(site)
    assert set(kept) == WANTED


@pytest.mark.slow
@pytest.mark.timeout(300)
def test_half_a_minute_of_chaos_leaves_every_event_accounted_for() -> None:

    soak = subprocess.run(
        [sys.executable, "-m", "tests.soak", "--seconds", "30", "--seed", "1"], cwd=ROOT, capture_output=True, text=True
    )
    assert soak.returncode == 0, soak.stdout + soak.stderr
    assert "every event that was fed is accounted for" in soak.stdout
