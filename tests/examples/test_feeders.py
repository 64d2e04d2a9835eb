"""The feeder of examples/ with only pyzmq: a node that is killed while it feeds, and feeders of older versions."""

import signal
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest

from hltnode.daemon.event_building.accounting import closes
from hltnode.protocol.raw_data.mdf import iter_records
from hltnode.protocol.raw_data.odin import decode_odin
from hltnode.protocol.transport.control_messages import CONTROL_VERSION
from hltnode.protocol.transport.frame_header import VERSION
from tests.daemon.processes.test_processes import Site

EXAMPLES = Path(__file__).resolve().parents[2] / "examples"
EVENTS = 50
MEPS = 40
# The fake engine accepts the odd events of a MEP.
WANTED = list(range(1, MEPS * EVENTS, 2))

pytestmark = [pytest.mark.process, pytest.mark.loopback]


def older_feeder(folder: Path, text: str, replacement: str) -> list[str]:
    """The example with this text replaced: the command that feeds some MEPs."""
    source = (EXAMPLES / "bare_zmq_feeder.py").read_text()
    assert source.count(text) == 1
    (folder / "old.py").write_text(source.replace(text, replacement))
    return [sys.executable, str(folder / "old.py")]


@pytest.fixture
def site(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[Site]:
    # A damaged frame is sent again at once, but this takes a while if every process is slow.
    monkeypatch.setenv("HLTNODE_BUILDER__OVERTAKEN_AFTER_MS", "10000")
    site = Site(tmp_path, 1)
    yield site
    for process in site.processes:
        if process.poll() is None:
            process.kill()
            process.wait()


def run_with_a_killed_node(site: Site, command: list[str]) -> str:
    """Start the node after the feeder, kill it and start it again; returns the output of the feeder."""
    with subprocess.Popen(command, stdout=subprocess.PIPE, text=True) as feeder:
        node = site.start_node()
        site.wait_for_events(5 * EVENTS)
        node.kill()
        node.wait()
        site.start_node()
        printed, _ = feeder.communicate(timeout=120)
    assert feeder.returncode == 0, printed + site.logs()
    return printed


def kept_events(site: Site) -> list[int]:
    """The events in the files of both sessions of the node, after the end of the second one."""
    node = site.processes[-1]
    node.send_signal(signal.SIGTERM)
    assert site.wait(node) == 0, site.logs()
    return sorted(
        decode_odin(record.banks()[0]).event_id
        for path in site.output.glob("*.mdf")
        for record in iter_records(path.read_bytes())
    )


def check_accounts(site: Site) -> None:
    status = site.status()
    assert status is not None
    assert closes(status["accounting"]), status["accounting"]
    assert status["accounting"]["meps"]["complete"] == status["accounting"]["meps"]["opened"]


def test_the_feeder_with_pyzmq_only_loses_nothing_when_the_node_is_killed(site: Site) -> None:
    program = EXAMPLES / "bare_zmq_feeder.py"
    assert "hltnode import" not in program.read_text()
    printed = run_with_a_killed_node(
        site, [sys.executable, str(program), site.data, site.control, "--meps", str(MEPS), "--rate", "1000"]
    )
    assert f"{MEPS} MEPs acknowledged" in printed
    check_accounts(site)
    assert kept_events(site) == WANTED


def test_a_feeder_of_an_older_version_ends_with_an_error_that_names_both_versions(site: Site, tmp_path: Path) -> None:
    program = older_feeder(tmp_path, "CONTROL_VERSION = 3", "CONTROL_VERSION = 2")
    site.start_node()
    feeder = subprocess.run(
        [*program, site.data, site.control, "--meps", "5"], capture_output=True, text=True, timeout=60, check=False
    )
    assert feeder.returncode == 1, feeder.stderr
    expected = f"version {CONTROL_VERSION} expected, {CONTROL_VERSION - 1} found; since version {CONTROL_VERSION} "
    assert expected in feeder.stderr
    assert expected in site.logs()
    status = site.status()
    assert status is not None
    assert status["accounting"]["fragments"]["received"] == 0


def test_frames_with_an_older_header_are_counted_and_logged_with_both_versions(site: Site, tmp_path: Path) -> None:
    program = older_feeder(tmp_path, "0x464E4C48, 2, 0, RUN", "0x464E4C48, 1, 0, RUN")
    site.start_node()
    with subprocess.Popen([*program, site.data, site.control, "--meps", "5"]) as feeder:
        try:
            site.wait_for(lambda: f"version {VERSION} expected, {VERSION - 1} found" in site.logs())
        finally:
            feeder.kill()
    status = site.status()
    assert status is not None
    accounts = status["accounting"]
    assert closes(accounts), accounts
    assert accounts["fragments"]["corrupt"] == accounts["fragments"]["received"] > 0
    assert accounts["meps"]["opened"] == 0
