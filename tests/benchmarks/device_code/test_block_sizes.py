"""The scan of block sizes: the bound of a block, the marks of the table, and the sums."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import pytest

from benchmarks.device_code.block_sizes import OnDevice, Row, best_of, row_of, seconds_of, table_of, totals_of
from benchmarks.device_code.estimate import H100, RTX_3090, SLOW
from hltnode.processing.lhcb.velo.tracking.search_by_triplet import search_by_triplet
from tests.benchmarks.device_code.test_estimate import CYCLES, NEUTRAL, a_kernel, of_one
from tests.ptx.occupancy import MULTIPROCESSORS

DEVICES = ("H100 SXM", "RTX 3090")


def a_row(size: int, h100: float, rtx: float, **other: Any) -> Row:
    devices = {name: OnDevice(40, 0.5, 3e-9 * ns, 1e-9 * ns) for name, ns in zip(DEVICES, (h100, rtx), strict=True)}
    row = Row("fit", size, size == 64, size == 256, 1000.0, 20.0, 2.0, 500.0, 1024, devices)
    return replace(row, **other)


def test_a_block_keeps_its_warps_until_the_slowest_one_ends() -> None:
    few = {"targets": {"sm_90": {"occupancy": 0.125}}, "block_size": 128}
    # Four warps of 250 instructions: as the estimate. One of 700 and three of 100: places for 2,800 are taken.
    even, uneven = (a_kernel(**few, path=path) for path in (250.0, 700.0))
    assert seconds_of(even, 8, NEUTRAL, H100) == pytest.approx(1000 / (2 * CYCLES))
    assert seconds_of(uneven, 8, NEUTRAL, H100) == pytest.approx(2800 / (2 * CYCLES))
    assert seconds_of({**uneven, "block_size": 100}, 8, NEUTRAL, H100) == pytest.approx(2800 / (2 * CYCLES))


def test_a_block_that_is_no_event_has_the_bounds_of_the_estimate() -> None:
    few = {"targets": {"sm_90": {"occupancy": 0.125}}}
    row = a_kernel(**few, grid="ROWS", path=700.0)
    assert seconds_of(row, 8, NEUTRAL, H100) == of_one(NEUTRAL, **few).seconds
    assert seconds_of({**row, "grid": "EVENTS"}, 8, NEUTRAL, H100) > of_one(NEUTRAL, **few).seconds


def test_the_devices_differ_in_occupancy_multiprocessors_clock_and_memory() -> None:
    assert MULTIPROCESSORS[RTX_3090.architecture.removeprefix("sm_")].warps == RTX_3090.warps
    row = a_kernel(path=500.0, sectors=1e5, targets={"sm_86": {"occupancy": 1.0}})
    assert seconds_of(row, 8, SLOW, RTX_3090) == pytest.approx(3.2e6 / 936e9)


def test_a_row_marks_the_declared_sizes() -> None:
    target = {"occupancy": 0.5, "registers": 64}
    described = a_kernel(
        active_lanes=20.0,
        path=900.0,
        shared_bytes=4128,
        targets={"sm_90": target, "sm_86": {**target, "registers": 60}},
    )
    marks = {}
    for size in (32, 64, 256):
        row = row_of(search_by_triplet, {**described, "block_size": size}, 7)
        marks[size] = (row.is_declared, row.is_for_large)
    assert marks == {32: (True, False), 64: (False, False), 256: (False, True)}
    assert [on.registers for on in row.devices.values()] == [64, 60]
    assert row.devices["H100 SXM"].slow > row.devices["H100 SXM"].fast
    assert row.devices["RTX 3090"].slow > row.devices["H100 SXM"].slow


def test_the_best_size_is_that_of_the_lowest_estimate_on_its_device() -> None:
    rows = [a_row(32, 7, 5), a_row(64, 6, 6), a_row(128, 6, 7), a_row(32, 1, 1, kernel="sort")]
    assert {kernel: row.block_size for kernel, row in best_of(rows, "H100 SXM").items()} == {"fit": 64, "sort": 32}
    assert best_of(rows, "RTX 3090")["fit"].block_size == 32


def test_both_ends_of_the_estimate_decide() -> None:
    slow_end = OnDevice(40, 0.5, slow=9e-9, fast=1e-9)
    rows = [a_row(32, 0, 0, devices={"H100 SXM": slow_end}), a_row(64, 2.4, 0), a_row(128, 2.6, 0)]
    assert best_of(rows, "H100 SXM")["fit"].block_size == 64
    assert slow_end.mean == pytest.approx(5e-9)


def test_the_table_marks_the_best_and_calls_the_times_an_estimate() -> None:
    header, _, *lines = table_of([a_row(32, 7, 5), a_row(64, 6, 6), a_row(256, 8, 8)], None)
    assert header.count("estimate") == 2
    assert "gpu" not in header
    assert "| 21.0 to 7.0 | 50% | 15.0 to 5.0, best |" in lines[0]
    assert "| fit | 64 | declared | 1,000 | 20.0 | 2 | 500 | 1,024 | 40 / 40 | 50% | 18.0 to 6.0, best |" in lines[1]
    assert "| large |" in lines[2]
    assert "best" not in lines[2]


def test_measured_times_have_a_column_of_their_own_marked_gpu() -> None:
    header, _, first, second = table_of([a_row(32, 7, 5, measured=4.2e-9), a_row(64, 6, 6)], "H200")
    assert header.endswith("| ns, gpu: H200 |")
    assert first.endswith("| 4.2 |")
    assert second.endswith("|  |")


def test_the_sums_compare_declared_with_best_sizes() -> None:
    rows = [a_row(32, 5, 5), a_row(64, 6, 4), a_row(64, 10, 10, kernel="sort")]
    h100, rtx = totals_of(rows)
    assert h100.startswith("H100 SXM, estimate: 48 to 16 ns per event with the declared sizes, 45 to 15 ns")
    assert rtx.startswith("RTX 3090, estimate: 42 to 14 ns per event with the declared sizes, 42 to 14 ns")
