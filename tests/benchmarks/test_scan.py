"""The scan of events per second over the events of a batch and the threads."""

from __future__ import annotations

from pathlib import Path

import pytest
from rich.console import Console

from benchmarks.cpu import command
from benchmarks.cpu.scan import MEP_EVENTS, Point, figures_of, meps_of_turn, scan, table_of, threads_of_machine
from benchmarks.lhcb.real_events import CHAIN, real_events
from hltnode.processing.framework.backends.interface import BackendError
from hltnode.processing.framework.limits import BatchLimits
from hltnode.processing.framework.offline_runner import MAX_HELD_BYTES, WORKSPACES, batches_of, encode_mep

POINTS = [
    Point(64, 1, 8000.0, 7000.0, 9000.0, 120.0),
    Point(64, 2, 15000.0, 14000.0, 15500.0, 130.0),
    Point(128, 1, 8100.0, 7100.0, 9100.0, 119.0),
    Point(128, 2, 15100.0, 14100.0, 15600.0, 129.0),
]


@pytest.mark.parametrize(("processors", "threads"), [(1, (1,)), (2, (1, 2)), (3, (1, 2, 3)), (12, (1, 2, 4, 8, 12))])
def test_threads_are_powers_of_two_and_all_processors(
    monkeypatch: pytest.MonkeyPatch, processors: int, threads: tuple[int, ...]
) -> None:
    monkeypatch.setattr("os.sched_getaffinity", lambda _: set(range(processors)))
    assert threads_of_machine() == threads


def test_the_table_has_a_row_for_each_number_of_events_and_the_range_of_the_turns() -> None:
    console = Console(width=200, record=True)
    console.print(table_of("velo", POINTS))
    text = console.export_text()
    rows = [line for line in text.splitlines() if line.startswith("│")]
    assert [row.split()[1] for row in rows] == ["64", "128"]
    assert "15,000 (14,000 to 15,500)" in rows[0]
    assert "load" in text


def test_the_json_has_every_point_and_the_machine() -> None:
    found = figures_of("velo", POINTS)
    assert found["points"][3] == {
        **{"events": 128, "threads": 2, "per_second": 15100.0, "lowest": 14100.0, "highest": 15600.0},
        "cpu_us": 129.0,
    }
    assert set(found["machine"]) == {"processor", "cores", "load"}


def test_batches_of_one_and_of_two_meps_are_measured_in_turn(shared: Path) -> None:
    points = scan("velo", shared, turns=2, batches=(MEP_EVENTS, 2 * MEP_EVENTS), threads=(1,))
    assert [(point.events, point.threads) for point in points] == [(MEP_EVENTS, 1), (2 * MEP_EVENTS, 1)]
    for point in points:
        assert 0.0 < point.lowest <= point.per_second <= point.highest
        assert point.cpu_us > 0.0


def test_the_largest_batch_fills_every_workspace_in_a_turn(shared: Path) -> None:
    mep = encode_mep(CHAIN.with_sequence("velo"), real_events(shared)[:1] * MEP_EVENTS, encoding="retina")
    largest = 64 * MEP_EVENTS
    batches = list(batches_of(meps_of_turn(mep, largest), BatchLimits(events=largest, input_bytes=256 << 20)))
    assert mep.held_bytes * largest // MEP_EVENTS > MAX_HELD_BYTES
    assert [sum(it.n_events for it in batch) for batch in batches] == [largest] * WORKSPACES


def test_a_scan_without_enough_memory_says_so(
    capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch, shared: Path
) -> None:
    def short(*_: object) -> None:
        raise BackendError("3 slots need 8 GiB")

    monkeypatch.setattr("hltnode.processing.framework.engine.Engine.require_memory", short)
    assert command.main(["--scan", "--events", "64", "--threads", "1"], shared) == 2
    assert "3 slots need 8 GiB" in capsys.readouterr().err


@pytest.mark.parametrize("arguments", [["--events", "100"], ["--events", "0"], ["--threads", "0"]])
def test_events_that_fill_no_meps_and_no_threads_are_refused(
    capsys: pytest.CaptureFixture[str], tmp_path: Path, arguments: list[str]
) -> None:
    with pytest.raises(SystemExit) as stopped:
        command.main(["--scan", *arguments], tmp_path)
    assert stopped.value.code == 2
    assert "multiples of 64" in capsys.readouterr().err


def test_a_scan_without_the_real_events_says_what_is_missing(
    capsys: pytest.CaptureFixture[str], tmp_path: Path
) -> None:
    assert command.main(["--scan"], tmp_path) == 2
    assert str(tmp_path) in capsys.readouterr().err
