"""The feeders of examples/ in C and with only pyzmq, and a node that is killed while they feed."""

import os
import re
import shutil
import signal
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest
import zmq

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


def loaded_libzmq() -> Path:
    """The libzmq that pyzmq uses in this process: its own, or that of the system."""
    assert zmq.zmq_version_info() >= (4, 2)
    with Path("/proc/self/maps").open() as maps:
        found = {line.split(maxsplit=5)[5].strip() for line in maps if re.search(r"/libzmq[^/]*\.so", line)}
    assert found, "pyzmq has no shared libzmq to link with: it was built with a static one"
    return Path(found.pop())


def compiled(source: Path, program: Path) -> Path:
    """A feeder in C, compiled; it contains the required declarations in case <zmq.h> is missing."""
    compiler = os.environ.get("CC") or shutil.which("cc") or shutil.which("gcc") or shutil.which("clang")
    assert compiler, "no C compiler; hltnode itself needs a C++ compiler to be built"
    library = loaded_libzmq()
    warnings = ("-std=c11", "-Wall", "-Wextra", "-Werror")
    subprocess.run(
        [*compiler.split(), *warnings, "-O2", "-o", str(program), str(source), str(library),
         f"-Wl,-rpath,{library.parent}"],
        check=True, timeout=60,
    )  # fmt: skip
    return program


@pytest.fixture(scope="module")
def feeder_in_c(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return compiled(EXAMPLES / "feeder.c", tmp_path_factory.mktemp("examples") / "feeder")


def old_feeder_in_c(folder: Path, *versions: str) -> list[str]:
    """The example with these versions one lower: the command that feeds some MEPs."""
    source = (EXAMPLES / "feeder.c").read_text()
    for name in versions:
        source, n = re.subn(rf"\b{name} = (\d+)", lambda found: f"{found[0].split()[0]} = {int(found[1]) - 1}", source)
        assert n == 1
    (folder / "old.c").write_text(source)
    return [str(compiled(folder / "old.c", folder / "old")), "--meps", "5", "--events-per-mep", str(EVENTS)]


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


def test_the_feeder_in_c_loses_nothing_when_the_node_is_killed_and_frames_are_damaged(
    site: Site, feeder_in_c: Path
) -> None:
    printed = run_with_a_killed_node(
        site,
        [str(feeder_in_c), site.data, site.control, "--meps", str(MEPS), "--events-per-mep", str(EVENTS),
         "--rate", "1000", "--corrupt", "17"],
    )  # fmt: skip
    assert f"{MEPS} MEPs acknowledged" in printed
    again = re.search(r"\((\d+) again\)", printed)
    assert again is not None
    assert int(again[1]) > 0
    check_accounts(site)
    assert kept_events(site) == WANTED


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
    program, *options = old_feeder_in_c(tmp_path, "CONTROL_VERSION")
    site.start_node()
    feeder = subprocess.run(
        [program, site.data, site.control, *options], capture_output=True, text=True, timeout=60, check=False
    )
    assert feeder.returncode == 1, feeder.stderr
    expected = f"version {CONTROL_VERSION} expected, {CONTROL_VERSION - 1} found; since version {CONTROL_VERSION} "
    assert expected in feeder.stderr
    assert expected in site.logs()
    status = site.status()
    assert status is not None
    assert status["accounting"]["fragments"]["received"] == 0


def test_frames_with_an_older_header_are_counted_and_logged_with_both_versions(site: Site, tmp_path: Path) -> None:
    program, *options = old_feeder_in_c(tmp_path, "FRAME_VERSION")
    site.start_node()
    with subprocess.Popen([program, site.data, site.control, *options]) as feeder:
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
