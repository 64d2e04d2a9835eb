"""The units, the user and the folders for systemd, checked by systemd's own programs, if installed."""

from __future__ import annotations

import configparser
import os
import re
import stat
import sys
from pathlib import Path

import pytest

from hltnode.daemon.commands.common import thread_count
from hltnode.daemon.configuration.loading import load_config
from tests.deploy.tools import DEPLOY, LONGEST_STOP_SECONDS, ROOT, run, tool

SYSTEMD = DEPLOY / "systemd"
UNIT = SYSTEMD / "hltnode.service"
EXAMPLES = sorted((SYSTEMD / "examples").glob("*.conf"))


def service_section() -> configparser.SectionProxy:
    unit = configparser.ConfigParser(strict=False, interpolation=None)
    unit.optionxform = str  # type: ignore[assignment,method-assign]
    unit.read(UNIT)
    return unit["Service"]


@pytest.fixture(params=["hltnode.service", "hltnode@.service"])
def unit_with_a_program_that_exists(tmp_path: Path, request: pytest.FixtureRequest) -> Path:
    text = UNIT.read_text()
    assert "ExecStart=/opt/hltnode/bin/hltnode " in text
    path: Path = tmp_path / request.param
    path.write_text(text.replace("ExecStart=/opt/hltnode/bin/hltnode ", f"ExecStart={sys.executable} "))
    return path


def test_systemd_accepts_the_unit(unit_with_a_program_that_exists: Path) -> None:
    checked = run(tool("systemd-analyze"), "verify", "--man=no", unit_with_a_program_that_exists)
    assert (checked.returncode, checked.stdout + checked.stderr) == (0, "")


@pytest.mark.parametrize("example", EXAMPLES, ids=lambda path: path.name)
def test_systemd_accepts_the_unit_with_each_example_of_a_drop_in(
    unit_with_a_program_that_exists: Path, example: Path
) -> None:
    folder = unit_with_a_program_that_exists.with_name(unit_with_a_program_that_exists.name + ".d")
    folder.mkdir()
    (folder / example.name).write_text(example.read_text())
    verify = (tool("systemd-analyze"), "verify", "--man=no", unit_with_a_program_that_exists)
    checked = run(*verify)
    assert (checked.returncode, checked.stdout + checked.stderr) == (0, "")
    # The check would also accept a drop-in that systemd does not read.
    (folder / example.name).write_text(example.read_text().replace("[Service]", "[Service]\nNoSuchKey=1"))
    assert "NoSuchKey" in run(*verify).stderr


def test_the_unit_is_confined(unit_with_a_program_that_exists: Path) -> None:
    # The threshold is ten times the exposure level.
    checked = run(
        tool("systemd-analyze"), "security", "--offline=yes", "--threshold=20", unit_with_a_program_that_exists
    )
    assert checked.returncode == 0, checked.stdout + checked.stderr


def test_the_unit_waits_for_ready_has_a_watchdog_and_memory_that_may_be_pinned() -> None:
    service = service_section()
    assert service["Type"] == "notify"
    assert int(service["WatchdogSec"]) == 30
    assert service["KillMode"] == "mixed"
    assert service["LimitMEMLOCK"] == "infinity"
    assert service["ExecReload"] == "/bin/sh -c 'kill -HUP $$MAINPID'"


def test_a_stop_has_time_for_the_longest_drain_and_the_ends_of_all_threads() -> None:
    assert int(service_section()["TimeoutStopSec"]) > 1.25 * LONGEST_STOP_SECONDS
    # The comment there says it.
    assert f"in at most {LONGEST_STOP_SECONDS:.0f} s" in UNIT.read_text()


def test_instances_of_the_unit_share_no_folder_and_no_configuration() -> None:
    service = service_section()
    own = ("ExecStart", "StateDirectory", "CacheDirectory", "RuntimeDirectory", "WorkingDirectory", "Environment")
    assert [key for key in own if "%i" not in service[key]] == []


def test_the_drop_in_for_affinity_binds_cores_and_memory_to_one_numa_node() -> None:
    text = (SYSTEMD / "examples" / "affinity.conf").read_text()
    assert re.findall(r"^(\w+)=(.*)$", text, re.MULTILINE) == [
        ("NUMAPolicy", "bind"),
        ("NUMAMask", "0"),
        ("CPUAffinity", "numa"),
    ]


def test_the_cpu_back_end_has_one_thread_for_each_core_that_the_unit_leaves_it() -> None:
    before = os.sched_getaffinity(0)
    try:
        os.sched_setaffinity(0, {min(before)})
        assert thread_count(0) == 1
    finally:
        os.sched_setaffinity(0, before)


def test_the_user_and_the_folders_of_the_unit_are_made_and_the_group_reads_the_output(tmp_path: Path) -> None:
    """User and folders made by systemd's own programs, below a root folder of the test."""
    sysusers, tmpfiles = tool("systemd-sysusers"), tool("systemd-tmpfiles")
    if os.geteuid() != 0:
        pytest.skip("folders of another user can only be made by root")
    (tmp_path / "etc").mkdir()
    for command in (
        (sysusers, f"--root={tmp_path}", SYSTEMD / "hltnode.sysusers.conf"),
        (tmpfiles, f"--root={tmp_path}", "--create", SYSTEMD / "hltnode.tmpfiles.conf"),
    ):
        made = run(*command)
        assert made.returncode == 0, made.stdout + made.stderr
    service = service_section()
    user = next(line for line in (tmp_path / "etc/passwd").read_text().splitlines() if line.startswith("hltnode:"))
    name, _, uid, gid, _, home, shell = user.split(":")
    assert (name, shell) == (service["User"], "/usr/sbin/nologin")
    assert home == service["WorkingDirectory"].replace("%i", "")
    assert f"{service['Group']}:x:{gid}:" in (tmp_path / "etc/group").read_text().splitlines()

    output = load_config(DEPLOY / "node.toml").output.directory
    owner, group = int(uid), int(gid)
    for folder, mode, belongs_to in (
        (Path(home), int(service["StateDirectoryMode"], 8), (owner, group)),
        (output, 0o2750, (owner, group)),
        (Path("/etc/hltnode"), 0o755, (0, 0)),
        (Path("/etc/hltnode/keys"), 0o700, (0, 0)),
    ):
        status = (tmp_path / folder.relative_to("/")).stat()
        assert (stat.S_IMODE(status.st_mode), (status.st_uid, status.st_gid)) == (mode, belongs_to), folder
    # Files of the node are readable for its group only.
    assert int(service["UMask"], 8) == 0o027


def test_the_folder_of_systemd_holds_what_the_page_installs() -> None:
    page = (ROOT / "docs/how-to/run-a-node.md").read_text()
    for path in sorted(path for path in SYSTEMD.rglob("*") if path.is_file()):
        assert str(path.relative_to(ROOT)) in page
