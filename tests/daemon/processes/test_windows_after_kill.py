"""A node of a streaming chain is killed while it takes slices: its files have each window and each hit once."""

from __future__ import annotations

import json
import signal
from pathlib import Path
from types import ModuleType

import pytest
from typer.testing import CliRunner

import hltnode
from hltnode.daemon.cli import app
from hltnode.daemon.event_building.accounting import closes
from tests.daemon.fakes import RUN
from tests.daemon.node.streamed_hits import check_windows, make_stream, windows_in, write_slices
from tests.daemon.processes.test_processes import Site

pytestmark = [pytest.mark.process, pytest.mark.loopback]


def test_each_window_is_in_the_files_once_after_a_kill(stream: ModuleType, tmp_path: Path) -> None:
    hits = make_stream(stream.SOURCES, seed=8)
    site = Site(tmp_path, 1, meps=1)
    site.config.write_text(site.config.read_text() + '[trigger]\nchain = "stream"\n')
    slices, package = tmp_path / "slices.mdf", str(stream.STREAM.source.parents[1])
    n_events = write_slices(slices, stream, hits, core=1)
    try:
        feeder = site.start(
            *("tests.daemon.processes.command_of_chain", package, "replay", str(slices), "--chain", "stream"),
            *("--to", site.data, "--control", site.control, "--run", str(RUN), "--rate", "120", "--wait"),
            *("--events-per-mep", str(n_events)),
        )
        node = site.start("tests.daemon.processes.node_of_chain", str(site.config), package)
        site.wait_for(lambda: (status := site.status()) is not None and status["events"]["processed"] >= 80, 180.0)
        node.kill()
        assert site.wait(node) == -signal.SIGKILL
        assert feeder.poll() is None
        node = site.start("tests.daemon.processes.node_of_chain", str(site.config), package)
        assert site.wait(feeder) == 0, site.logs()
        status = site.status()
        assert status is not None
        assert closes(status["accounting"])
        node.terminate()
        assert site.wait(node) == 0, site.logs()
    finally:
        for process in site.processes:
            if process.poll() is None:
                process.kill()
                process.wait()
    files = sorted(site.output.glob("*accepted*.mdf"))
    assert len(files) == 2
    check_windows(windows_in(files), hits)

    # A reader needs the chain for names only.
    events = [event for file in files for event in hltnode.open(file, chain="stream")]
    assert {event.run for event in events} == {RUN}
    assert {name for event in events for name in event.decisions} == {"StreamWindows"}
    assert {bank.name for event in events for bank in event.banks_of("TIME_WINDOW")} == {"TIME_WINDOW"}
    assert f"run {RUN}, slice " in repr(events[0])
    window = events[0].window
    assert window is not None
    shown = CliRunner().invoke(app, ["inspect", *map(str, files), "--chain", "stream", "--json", "-"])
    assert shown.exit_code == 0, shown.output
    found = json.loads(shown.stdout)
    assert found["runs"] == [RUN]
    assert found["events"] == found["windows"]["records"] == len(events)
    kept = [(event.window.start_ns, event.window.end_ns) for event in events if event.window is not None]
    assert found["windows"] == {
        "records": len(kept),
        "kept_ns": sum(end - start for start, end in kept),
        "start_ns": min(start for start, _ in kept),
        "end_ns": max(end for _, end in kept),
        "cut_off": 0,
    }
