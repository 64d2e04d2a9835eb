"""`hltnode stream` to a real node: what it sends is decided, acknowledged and the same in each pass."""

from __future__ import annotations

import json
import signal
from collections.abc import Iterator
from pathlib import Path

import psutil
import pytest

from hltnode.processing.km3net.detector_constants import SUB_SLICE_NS
from hltnode.protocol.km3net.hit_banks import hits_of
from hltnode.protocol.raw_data.mdf import iter_records
from hltnode.protocol.raw_data.time_windows import TimeWindow
from tests.daemon.node.streamed_hits import windows_in
from tests.daemon.processes.test_processes import Site

pytestmark = [pytest.mark.process, pytest.mark.loopback]

CORE, N_SLICES = 20, 2
PERIOD_NS = CORE * N_SLICES * SUB_SLICE_NS


@pytest.fixture
def site(tmp_path: Path) -> Iterator[Site]:
    site = Site(tmp_path, 14, meps=1)
    text = site.config.read_text().replace(
        "mep_timeout_ms = 400", "mep_timeout_ms = 60000\novertaken_after_ms = 60000\nevict_after_ms = 60000"
    )
    site.config.write_text(text + '[trigger]\nchain = "km3net"\n')
    try:
        yield site
    finally:
        for process in site.processes:
            if process.poll() is None:
                process.kill()
                process.wait()


def start(site: Site, *options: str, feeders: int = 14) -> None:
    """A node that waits for a number of feeders, and the command that streams to it."""
    site.config.write_text(site.config.read_text().replace("min_feeders = 14", f"min_feeders = {feeders}"))
    site.start("hltnode.daemon", "serve", "--config", str(site.config))
    site.wait_for(lambda: (status := site.status()) is not None and status["state"] == "running", 180.0)
    site.start(
        "hltnode.daemon", "stream", "--chain", "km3net", "--to", site.data, "--control", site.control,
        "--sub-slices", str(CORE), "--slices", str(N_SLICES), "--json", str(site.directory / "s.json"), *options,
    )  # fmt: skip


def test_each_pass_has_the_hits_of_the_truth_at_its_own_times(site: Site) -> None:
    truth = site.directory / "truth.mdf"
    # 7 slices of 0.5 ms: three passes and a half.
    start(site, "--seconds", "0.0035", "--rate", "60000", "--seed", "4", "--truth", str(truth))
    node, stream = site.processes
    assert site.wait(stream, 180.0) == 0, site.logs()
    node.terminate()
    assert site.wait(node) == 0, site.logs()
    result = json.loads((site.directory / "s.json").read_text())
    of_sub_slices = [len(hits_of(record.banks())) for record in iter_records(truth.read_bytes())]
    assert len(of_sub_slices) == CORE * N_SLICES
    assert result["hits"] == 3 * sum(of_sub_slices) + sum(of_sub_slices[:CORE])
    assert (result["sources"], result["slices"], result["acknowledged"]) == (14, 7, 7)
    assert result["in_time"] + result["late"] == 7
    assert result["repeats_after_sub_slices"] == CORE * N_SLICES
    windows = windows_in(sorted(site.output.glob("*accepted*.mdf")))
    assert len({window.id for window in windows}) == len(windows)
    # The first pass lacks what begins before its start; windows of the others are those of the stretch.
    passes = [shifted(windows, number) for number in (1, 2)]
    assert len(passes[0]) > 5
    assert passes[0] == passes[1]


def shifted(windows: list[TimeWindow], number: int) -> list[tuple[int, int, list[int]]]:
    """Windows in a pass, by times since its start; those that reach over its ends are left out."""
    begin, end = number * PERIOD_NS, (number + 1) * PERIOD_NS
    inside = (each for each in windows if begin < each.start_ns and each.end_ns < end)
    return sorted((each.start_ns - begin, each.end_ns - begin, (each.times - begin).tolist()) for each in inside)


def test_the_first_ctrl_c_ends_an_endless_stream_and_loses_nothing(site: Site) -> None:
    start(site, "--rate", "1000")
    node, stream = site.processes
    site.wait_for_events(4 * (CORE + 2))
    stream.send_signal(signal.SIGINT)
    assert site.wait(stream, 180.0) == 0, site.logs()
    result = json.loads((site.directory / "s.json").read_text())
    assert result["slices"] >= 4
    assert result["acknowledged"] == result["slices"]
    assert result["unacknowledged"] == []
    status = site.status()
    assert status is not None
    assert status["events"]["processed"] == result["slices"] * (CORE + 2)
    node.terminate()
    assert site.wait(node) == 0, site.logs()


@pytest.mark.timeout(600)
def test_several_processes_send_the_stream_of_one(site: Site) -> None:
    truth = site.directory / "truth.mdf"
    options = ("--seconds", "0.0035", "--rate", "60000", "--seed", "4", "--truth", str(truth))
    start(site, *options, "--processes", "3", feeders=3)
    node, stream = site.processes
    assert site.wait(stream, 180.0) == 0, site.logs()
    result = json.loads((site.directory / "s.json").read_text())
    assert (result["sources"], result["slices"], result["acknowledged"]) == (14, 7, 7)
    assert result["in_time"] + result["late"] == 7
    assert result["fragments"] - result["resent"] == 14 * 7
    status = site.status()
    assert status is not None
    assert status["events"]["processed"] == 7 * (CORE + 2)
    node.terminate()
    assert site.wait(node) == 0, site.logs()
    windows = windows_in(sorted(site.output.glob("*accepted*.mdf")))
    passes = [shifted(windows, number) for number in (1, 2)]
    assert len(passes[0]) > 5
    assert passes[0] == passes[1]


@pytest.mark.timeout(600)
def test_a_process_that_is_killed_ends_the_stream_with_an_error(site: Site) -> None:
    start(site, "--rate", "1000", "--processes", "3", feeders=3)
    stream = site.processes[1]
    site.wait_for_events(2 * (CORE + 2), 240.0)
    parts = [child for child in psutil.Process(stream.pid).children() if "spawn_main" in " ".join(child.cmdline())]
    assert len(parts) == 3
    sorted(parts, key=lambda part: (part.create_time(), part.pid))[1].kill()
    assert site.wait(stream, 180.0) == 1, site.logs()
    result = json.loads((site.directory / "s.json").read_text())
    assert result["error"] == "the process stream 2/3 was killed by signal 9 (Killed)"
    assert not any(part.is_running() for part in parts)


@pytest.mark.timeout(600)
def test_ctrl_c_ends_all_processes_behind_the_same_slice(site: Site) -> None:
    start(site, "--rate", "1000", "--processes", "2", feeders=2)
    node, stream = site.processes
    site.wait_for_events(4 * (CORE + 2), 240.0)
    stream.send_signal(signal.SIGINT)
    assert site.wait(stream, 180.0) == 0, site.logs()
    result = json.loads((site.directory / "s.json").read_text())
    assert result["slices"] >= 4
    assert result["acknowledged"] == result["slices"]
    assert result["in_time"] + result["late"] == result["slices"]
    status = site.status()
    assert status is not None
    assert status["events"]["processed"] == result["slices"] * (CORE + 2)
    node.terminate()
    assert site.wait(node) == 0, site.logs()
