"""`hltnode record` at a node of a streaming chain: the replayed slices give the same windows."""

from __future__ import annotations

from pathlib import Path
from types import ModuleType

import pytest

from hltnode.daemon.commands.demo_processes import free_ports
from hltnode.protocol.raw_data.time_windows import TimeWindow
from tests.daemon.fakes import RUN
from tests.daemon.node.streamed_hits import check_windows, make_stream, windows_in, write_slices
from tests.daemon.processes.test_processes import Site

pytestmark = [pytest.mark.process, pytest.mark.loopback]

CORE, N_SLICES = 6, 10


def session(folder: Path, chain: ModuleType, source: Path, recording: Path | None, *replay: str) -> list[TimeWindow]:
    """The records of a node that takes slices, and perhaps records them."""
    folder.mkdir()
    site, package = Site(folder, 1, meps=1), str(chain.STREAM.source.parents[1])
    tap = f"tcp://127.0.0.1:{free_ports(1)[0]}"
    site.config.write_text(site.config.read_text() + f'[trigger]\nchain = "stream"\n[tap]\nendpoint = "{tap}"\n')
    command = ("tests.daemon.processes.command_of_chain", package)
    try:
        node = site.start("tests.daemon.processes.node_of_chain", str(site.config), package)
        site.wait_for(lambda: site.status() is not None, 180.0)
        if recording is not None:
            recorder = site.start(*command, "record", str(recording), "--from", tap, "--meps", str(N_SLICES))
            site.wait_for(lambda: b"recorders" in (folder / "log0").read_bytes())
        feeder = site.start(
            *command, "replay", str(source), "--chain", "stream", "--to", site.data, "--control", site.control,
            "--run", str(RUN), *replay,
        )  # fmt: skip
        assert site.wait(feeder) == 0, site.logs()
        if recording is not None:
            assert site.wait(recorder) == 0, site.logs()
        node.terminate()
        assert site.wait(node) == 0, site.logs()
    finally:
        for process in site.processes:
            if process.poll() is None:
                process.kill()
                process.wait()
    return windows_in(sorted(site.output.glob("*accepted*.mdf")))


def test_replayed_slices_have_the_windows_of_the_recorded_ones(stream: ModuleType, tmp_path: Path) -> None:
    hits = make_stream(stream.SOURCES, seed=8)
    n_events = write_slices(tmp_path / "slices.mdf", stream, hits, CORE)
    recording = tmp_path / "recording"
    first = session(tmp_path / "first", stream, tmp_path / "slices.mdf", recording, "--events-per-mep", str(n_events))
    assert [path.suffix for path in sorted(recording.iterdir())] == [".mep"]
    check_windows(first, hits)
    second = session(tmp_path / "second", stream, recording, None)
    assert {each.id: (each.start_ns, each.end_ns, each.hits.tobytes()) for each in second} == {
        each.id: (each.start_ns, each.end_ns, each.hits.tobytes()) for each in first
    }
    assert len({each.slice for each in first}) > 4
