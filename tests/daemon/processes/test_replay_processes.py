"""`hltnode replay` as a process: exit codes, output and JSON of every kind of end."""

import json
import signal
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest
from typer.testing import CliRunner

from hltnode.daemon.cli import app
from tests.daemon.fakes import RUN, SOURCES
from tests.daemon.processes.test_processes import MEPS, ROOT, Site, site

__all__ = ["site"]

pytestmark = [pytest.mark.process, pytest.mark.loopback]

# How the error of a feeder ends that has lost its patience; refusals that cannot heal end it at once.
WAITED = "refused for 30 s"


def feed(site: Site, *arguments: str) -> subprocess.Popen[bytes]:
    return site.start(
        "hltnode.daemon", "replay", "--to", site.data, "--control", site.control, str(site.input),
        "--run", str(RUN), "--json", str(site.directory / "report.json"), *arguments,
    )  # fmt: skip


def report_of(site: Site) -> dict[str, Any]:
    report: dict[str, Any] = json.loads((site.directory / "report.json").read_text())
    return report


def printed_by(site: Site) -> str:
    return max(site.directory.glob("log*"), key=lambda path: path.name).read_text()


@pytest.mark.parametrize(("number", "exit_code"), [(signal.SIGINT, 130), (signal.SIGTERM, 143)])
def test_an_interrupted_feeder_reports_its_result_and_exits_non_zero(
    site: Site, number: signal.Signals, exit_code: int
) -> None:
    site.start_node()
    feeder = feed(site, "--rate", "100")
    site.wait_for_events(40)
    feeder.send_signal(number)
    assert site.wait(feeder) == exit_code, site.logs()
    report = report_of(site)
    assert 0 < report["meps"] < MEPS
    assert report["error"] == f"ended by {number.name} before all MEPs were sent and acknowledged"
    assert report["error"] in " ".join(printed_by(site).split())
    assert "Traceback" not in printed_by(site)


def test_ctrl_c_while_the_commands_are_imported_shows_no_traceback() -> None:
    code = """
import builtins, os, signal
from hltnode.daemon.__main__ import main
genuine = builtins.__import__
def interrupted(name, *rest):
    if name == "hltnode.daemon.cli":
        os.kill(os.getpid(), signal.SIGINT)
    return genuine(name, *rest)
builtins.__import__ = interrupted
main()
"""
    ended = subprocess.run([sys.executable, "-c", code], cwd=ROOT, capture_output=True, timeout=60, check=False)
    assert ended.returncode == 128 + signal.SIGINT
    assert ended.stderr == b"interrupted\n"


def test_fragments_that_came_too_late_are_not_accepted_and_make_the_exit_code_1(site: Site) -> None:
    site.start_node()
    feeder = feed(site, "--rate", "600", "--fault", "delay=0.05", "--seed", "3")
    assert site.wait(feeder) == 1, site.logs()
    late = report_of(site)["refused"]["late"]
    assert 0 < late["meps"] <= late["fragments"] < 200
    assert f"not accepted: {late['fragments']} fragments of {late['meps']} MEPs, late" in printed_by(site)
    assert report_of(site)["unacknowledged"] == 0


def test_a_node_waits_for_all_connections_of_a_feeder(site: Site) -> None:
    """The configuration expects one feeder; the feeder announces more."""
    site.start_node()
    assert site.wait(feed(site, "--sources", "2")) == 0, site.logs()
    status = site.status()
    assert status is not None
    assert status["accounting"]["meps"]["complete"] == status["accounting"]["meps"]["opened"]


def test_connections_above_the_limit_of_the_node_are_refused_soon_with_advice(
    site: Site, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("HLTNODE_BUILDER__MAX_FEEDERS", "1")
    site.start_node()
    assert site.wait(feed(site, "--sources", "4")) == 1, site.logs()
    assert WAITED not in report_of(site)["error"]
    assert "builder.max_feeders" in report_of(site)["error"]
    assert "--sources" in " ".join(printed_by(site).split())


def test_too_many_events_per_mep_are_refused_at_once_with_advice(site: Site, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("HLTNODE_PIPELINE__MAX_EVENTS", "4")
    site.start_node()
    assert site.wait(feed(site)) == 1, site.logs()
    assert WAITED not in report_of(site)["error"]
    assert "8 events per MEP, 1 to 4 expected: feed fewer events per MEP" in report_of(site)["error"]
    assert "pipeline.max_events" in report_of(site)["error"]


def test_another_run_than_the_node_is_configured_for_is_refused_at_once(
    site: Site, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("HLTNODE_NODE__RUN", "7")
    site.start_node()
    assert site.wait(feed(site)) == 1, site.logs()
    assert WAITED not in report_of(site)["error"]
    assert f"accepts run 7, not {RUN}" in report_of(site)["error"]
    assert "--run" in report_of(site)["error"]


def test_a_name_that_no_message_can_carry_is_refused_before_anything_is_sent(site: Site) -> None:
    assert site.wait(feed(site, "--name", "a" * 65)) == 2
    assert "--name" in printed_by(site)


def test_the_feeder_of_a_closed_run_ends_and_names_unacknowledged_meps(site: Site) -> None:
    site.start_node()
    feeder = feed(site, "--rate", "100")
    site.wait_for_events(40)
    result = CliRunner().invoke(app, ["ctl", "close", "--to", site.control, "--timeout", "20"])
    assert result.exit_code == 0, result.output + site.logs()
    assert site.wait(feeder) == 1, site.logs()
    report = report_of(site)
    assert report["error"] == f"run {RUN} was closed by an operator"
    assert 0 < report["meps"] < MEPS
    ranges = report["unacknowledged_meps"]
    assert sum(last - first + 1 for first, last in ranges) == report["unacknowledged"]
    assert ("not acknowledged: MEPs" in printed_by(site)) == bool(ranges)


def test_a_feeder_killed_at_its_very_end_and_restarted_can_finish(site: Site, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("TEST_SILENT_SECONDS", "40")
    site.start_node()
    # After its last fragment, before any acknowledgement of it.
    killed = feed(site, "--rate", "2000", "--fault", f"kill-after={MEPS * len(SOURCES)}")
    assert site.wait(killed) == -signal.SIGKILL
    again = feed(site)
    assert site.wait(again) == 0, site.logs()
    assert report_of(site)["meps"] == MEPS
    events = site.kept_events()
    assert len(events) == len(set(events))


@pytest.mark.slow
def test_a_restarted_feeder_can_finish_after_the_others_have_left(tmp_path: Path) -> None:
    site = Site(tmp_path, 2)
    try:
        site.start_node()
        first = feed(site, "--part", "1/2", "--fault", f"kill-after={MEPS * len(SOURCES) // 2}")
        second = site.start_feeder(2)
        assert site.wait(first) == -signal.SIGKILL, site.logs()
        assert site.wait(second) == 0, site.logs()
        exit_code = site.wait(site.start_feeder(1))
        # SIGKILL may have come before its last fragments had left the process; their MEPs were closed without them.
        assert exit_code == (1 if "late" in printed_by(site) else 0), site.logs()
        events = site.kept_events()
        assert len(events) == len(set(events))
    finally:
        for process in site.processes:
            if process.poll() is None:
                process.kill()
                process.wait()
