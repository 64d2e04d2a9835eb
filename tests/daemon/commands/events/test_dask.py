"""`hltnode process --dask`: the results of one machine, whatever becomes of the workers."""

from __future__ import annotations

import json
import os
import random
import signal
import subprocess
import sys
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import replace
from pathlib import Path
from typing import Any

import psutil
import pytest
from distributed import Client, LocalCluster
from typer.testing import CliRunner

from hltnode.daemon.cli import app
from hltnode.daemon.commands.events import dask_workers
from hltnode.daemon.commands.events.dask_workers import EVENTS_PER_RANGE, checked_processor, expected_of
from hltnode.daemon.commands.events.event_processor import Setup
from hltnode.daemon.commands.events.sample_results import PartResult, SampleResult
from hltnode.daemon.storage.root_file import read_root
from hltnode.processing.selection.studies.rates import RateCounts
from hltnode.protocol.raw_data.mdf import iter_records

pytestmark = [pytest.mark.process, pytest.mark.timeout(600)]

SETUP = Setup(
    chain="lhcb",
    trigger=None,
    sequence="velo",
    geometry=None,
    backend="cpu",
    threads=1,
    device=0,
    encoding="auto",
)


def hltnode(*arguments: str | Path) -> str:
    result = CliRunner().invoke(app, [str(argument) for argument in arguments])
    assert result.exit_code == 0, result.output
    return result.output


@pytest.fixture(scope="module")
def files(tmp_path_factory: pytest.TempPathFactory) -> list[Path]:
    """Sixteen events, drawn repeatedly in random order until they fill several ranges; one range is in both files."""
    folder = tmp_path_factory.mktemp("sample")
    hltnode("simulate", "-n", "16", "--seed", "11", "-o", folder / "once.mdf")
    content = (folder / "once.mdf").read_bytes()
    records, at = [], 0
    for record in iter_records(content):
        records.append(content[at : at + record.header.record_size])
        at += record.header.record_size
    drawn = random.Random(12)
    paths = [folder / "a.mdf", folder / "b.mdf"]
    for path, n_events in zip(paths, (2 * EVENTS_PER_RANGE + 100, EVENTS_PER_RANGE + 50), strict=True):
        path.write_bytes(b"".join(drawn.choices(records, k=n_events)))
    return paths


def arguments_of(files: list[Path], folder: Path, *options: str) -> list[str]:
    """Of a `process` that writes all that it can into a folder."""
    folder.mkdir()
    outputs = ("--json", folder / "o.json", "--accepted", folder / "o.mdf", "--histograms", folder / "o.root")
    return [str(part) for part in ("process", *files, "--backend", "cpu", "--sequence", "velo", *outputs, *options)]


def processed(files: list[Path], folder: Path, *options: str) -> dict[str, Any]:
    """Everything that `process` makes."""
    hltnode(*arguments_of(files, folder, *options))
    return outputs_in(folder)


def outputs_in(folder: Path) -> dict[str, Any]:
    """Everything that a `process` has made: JSON without times and places, accepted events and histograms."""
    found: dict[str, Any] = json.loads((folder / "o.json").read_text())
    for place in ("seconds", "events_per_second", "threads", "workers"):
        del found[place]
    found["accepted"] = (folder / "o.mdf").read_bytes()
    held = read_root(folder / "o.root")
    found["histograms"] = {content.shape.name: content.counts.tolist() for content in held}
    found["documents"] = {path.name: path.read_text() for path in folder.glob("0x*.json")}
    return found


@pytest.fixture(scope="module")
def of_one_machine(files: list[Path], tmp_path_factory: pytest.TempPathFactory) -> dict[str, Any]:
    found = processed(files, tmp_path_factory.mktemp("one") / "o")
    assert len(found["per_event"]) == 3 * EVENTS_PER_RANGE + 150
    assert len(found["accepted"]) > 1000
    assert list(found["documents"]) == [found["trigger"]["tck"] + ".json"]
    assert sum(sum(counts) for counts in found["histograms"].values()) > 1000
    return found


@contextmanager
def cluster(n_workers: int) -> Iterator[tuple[str, Client]]:
    """Worker processes on this machine, as a farm would have them: address of the scheduler, and a client."""
    options: dict[str, Any] = {"dashboard_address": None, "host": "127.0.0.1", "memory_limit": None}
    with (
        LocalCluster(n_workers=n_workers, threads_per_worker=1, processes=True, **options) as local,
        Client(local, set_as_default=False) as client,
    ):
        yield local.scheduler_address, client


@contextmanager
def started(arguments: list[str], log: Path) -> Iterator[subprocess.Popen[bytes]]:
    """Run a command as a process group, and check that no process is left."""
    with log.open("wb") as file:
        command = [sys.executable, "-m", "hltnode.daemon", *arguments]
        process = subprocess.Popen(command, start_new_session=True, stdout=file, stderr=file)
    try:
        yield process
    finally:
        if process.poll() is None:
            os.killpg(process.pid, signal.SIGKILL)
            process.wait()


def wait_for(condition: Callable[[], bool]) -> None:
    end = time.monotonic() + 240
    while not condition():
        assert time.monotonic() < end
        time.sleep(0.02)


def test_the_results_of_several_workers_are_those_of_one_machine(
    files: list[Path], of_one_machine: dict[str, Any], tmp_path: Path
) -> None:
    assert processed(files, tmp_path / "o", "--dask", "local:2") == of_one_machine


def damaged(files: list[Path], folder: Path) -> list[Path]:
    """The files with a wrong bank in three events of the first one, and a second one that ends within an event."""
    folder.mkdir()
    paths = [folder / path.name for path in files]
    content = bytearray(files[0].read_bytes())
    at = 0
    for number, record in enumerate(iter_records(files[0].read_bytes())):
        if number in (3, EVENTS_PER_RANGE - 1, EVENTS_PER_RANGE):
            content[at + 48] ^= 1
        at += record.header.record_size
    paths[0].write_bytes(content)
    paths[1].write_bytes(files[1].read_bytes()[:-1])
    return paths


def test_damaged_events_are_named_and_left_out_as_on_one_machine(files: list[Path], tmp_path: Path) -> None:
    paths = damaged(files, tmp_path / "in")
    found, printed = [], []
    for name, options in (("here", ()), ("dask", ("--dask", "local:2"))):
        result = CliRunner().invoke(app, arguments_of(paths, tmp_path / name, *options))
        assert result.exit_code == 1, result.output
        found.append(outputs_in(tmp_path / name))
        printed.append([line for line in result.output.splitlines() if line.startswith("error:")])
    here, dask = found
    assert dask == here
    assert len(here["per_event"]) == 3 * EVENTS_PER_RANGE + 150 - 4
    assert here["damage"]["n"] == 4
    events = [f"(event {number} of the file)" for number in (3, EVENTS_PER_RANGE - 1, EVENTS_PER_RANGE)]
    assert [text[-len(event) :] for text, event in zip(here["damage"]["first"], events, strict=False)] == events
    assert "MDF record at byte" in here["damage"]["first"][3]
    assert printed[0] == printed[1] != []


@pytest.mark.slow
def test_the_ranges_of_a_killed_worker_are_processed_again(
    files: list[Path], of_one_machine: dict[str, Any], tmp_path: Path
) -> None:
    with cluster(3) as (address, client):
        # The worker accepts ranges without processing them until it is killed.
        address_of_killed, killed = next(iter(client.run(os.getpid).items()))
        os.kill(killed, signal.SIGSTOP)
        with started(arguments_of(files, tmp_path / "o", "--dask", address), tmp_path / "log") as process:
            try:
                wait_for(lambda: bool(client.processing()[address_of_killed]))
            finally:
                os.kill(killed, signal.SIGKILL)
            assert process.wait(240) == 0, (tmp_path / "log").read_text()
    assert outputs_in(tmp_path / "o") == of_one_machine


@pytest.mark.slow
def test_ctrl_c_ends_the_work_and_leaves_neither_processes_nor_unfinished_files(
    files: list[Path], tmp_path: Path
) -> None:
    folder = tmp_path / "o"
    with started(arguments_of(files * 100, folder, "--dask", "local:2"), tmp_path / "log") as process:
        unfinished = folder / "o.mdf.part"
        wait_for(lambda: process.poll() is not None or (unfinished.exists() and unfinished.stat().st_size > 0))
        assert process.poll() is None, (tmp_path / "log").read_text()
        children = psutil.Process(process.pid).children(recursive=True)
        assert len(children) >= 2
        # As the terminal does: to all processes of the command.
        os.killpg(process.pid, signal.SIGINT)
        assert process.wait(120) != 0
        _, alive = psutil.wait_procs(children, timeout=60)
    assert alive == []
    assert list(folder.iterdir()) == []


@pytest.mark.parametrize(
    ("change", "message"),
    [
        ({"tck": 1}, r"worker tcp://w:1 on .*: different TCK, 0x\w{8} instead of 0x00000001"),
        ({"geometry": "0"}, "different geometry"),
        ({"version": "9.9"}, r"different hltnode, .* instead of 9\.9"),
        ({"histograms": ()}, "different histograms"),
    ],
)
def test_a_worker_that_differs_from_this_machine_is_reported_by_name(change: dict[str, Any], message: str) -> None:
    expected = expected_of(SETUP)
    checked_processor(expected, SETUP, "tcp://w:1").close()
    with pytest.raises(ValueError, match=message):
        checked_processor(replace(expected, **change), SETUP, "tcp://w:1")


def test_parts_of_different_back_ends_are_not_merged() -> None:
    result = SampleResult((), (), ())
    part = PartResult(
        per_event=[],
        objects={},
        histogram_counts=result.histogram_counts,
        rates=RateCounts(()),
        accepted=b"",
        events=1,
        seconds=0.0,
        backend="cpu",
        threads=1,
        worker="tcp://a:1",
    )
    result.add(part)
    with pytest.raises(ValueError, match="worker tcp://b:1 computes on cuda, others on cpu"):
        result.add(replace(part, backend="cuda", worker="tcp://b:1"))
    assert result.events == 1


@pytest.mark.parametrize(
    ("options", "message"),
    [
        (("--dask", "local:0"), "expected local:N with the number of worker processes"),
        (("--dask", "local:many"), "expected local:N with the number of worker processes"),
        (("--dask", "local:2", "--repeat", "2"), "expected only one of --repeat"),
        (("--dask", "tcp://127.0.0.1:1"), "no Dask scheduler answers"),
        (("--dask", "nonsense://x"), "no Dask scheduler answers"),
    ],
)
def test_an_address_without_a_scheduler_is_refused(
    files: list[Path], options: tuple[str, ...], message: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(dask_workers, "CONNECT_SECONDS", 0.5)
    result = CliRunner().invoke(app, ["process", str(files[0]), *options])
    assert result.exit_code == 2
    assert message in " ".join(result.output.split())
