"""The table of kernels by threads per block: order, declared sizes, estimated times."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest
from rich.console import Console

from benchmarks.device_code import command
from benchmarks.device_code.block_sizes import nearest, rows_of, table_of, with_block_size
from hltnode.processing.lhcb.velo.tracking.kalman_filter import kalman_filter


def a_kernel(block_size: int, instructions: float) -> dict[str, Any]:
    return {
        **{"warp_instructions": instructions, "active_lanes": 20.0, "path": instructions / 2, "machine_per_ptx": 1.0},
        **{"global_instructions": 0.0, "barriers": 0.0, "sectors": 0.0, "used_bytes": 0.0, "grid": "EVENTS"},
        **{"block_size": block_size, "targets": {"sm_90": {"occupancy": 1.0}}},
    }


def a_report(block_size: int, **instructions: float) -> dict[str, Any]:
    kernels = {name: a_kernel(block_size, n) for name, n in instructions.items()}
    return {"kernels": kernels, "total": {"events": 8, "input_bytes": 1.0}}


REPORTS = {64: a_report(64, small=100.0, large=1000.0), 128: a_report(128, small=80.0, large=3000.0)}


@pytest.mark.parametrize(("size", "expected"), [(64, 64), (32, 64), (100, 128), (90, 64), (256, 128)])
def test_the_nearest_counted_size_is_that_by_ratio(size: int, expected: int) -> None:
    assert nearest(size, (128, 64)) == expected


def test_of_two_sizes_at_the_same_ratio_the_smaller_one_stands() -> None:
    assert nearest(64, (128, 32)) == 32


def test_the_kernel_that_takes_longest_as_declared_comes_first_and_others_are_left_out() -> None:
    rows = rows_of(REPORTS, {"small": 64, "large": 128})
    assert list(rows) == ["large", "small"]
    assert [row["is_declared"] for row in rows["large"].values()] == [False, True]
    assert rows["large"][128]["slow_ns"] == pytest.approx(3 * rows["large"][64]["slow_ns"], rel=0.05)
    assert rows["small"][64]["slow_ns"] > rows["small"][64]["fast_ns"] > 0.0
    assert list(rows_of(REPORTS, {"small": 64, "large": 128}, largest=1)) == ["large"]


def test_the_table_says_that_it_is_counted_and_marks_declared_sizes() -> None:
    console = Console(width=200, record=True)
    console.print(table_of(rows_of(REPORTS, {"small": 64, "large": 128}), "velo"))
    text = console.export_text()
    assert "not measured" in text
    assert [line.count("*") for line in text.splitlines() if line.startswith("│")] == [1, 1]


def test_a_block_size_replaces_the_launch_for_large_events() -> None:
    assert [launch.block_size for launch in with_block_size(kalman_filter, 32).launches] == [32]


@pytest.mark.parametrize("size", ["0", "257"])
def test_block_sizes_that_no_kernel_takes_are_refused(
    capsys: pytest.CaptureFixture[str], tmp_path: Path, size: str
) -> None:
    with pytest.raises(SystemExit) as stopped:
        command.main(["--block-sizes", size], tmp_path)
    assert stopped.value.code == 2
    assert "1 to 256" in capsys.readouterr().err
