"""The estimate of events per second from counts: the limiting bound, and the effect of assumptions."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import pytest
from rich.console import Console

from benchmarks.device_code.estimate import FAST, H100, SLOW, Assumptions, KernelEstimate, estimate, print_estimate
from benchmarks.device_code.machine_code import count_instructions
from benchmarks.gpu.comparison import comparison, verdict

CYCLES = H100.clock_hz * H100.multiprocessors
NEUTRAL = Assumptions("neutral", 1.0, 1.0, 4, 40, 0, True, False, 1e12)


def a_kernel(**other: Any) -> dict[str, Any]:
    row: dict[str, Any] = {
        "warp_instructions": 1000.0,
        "machine_per_ptx": None,
        "global_instructions": 0.0,
        "barriers": 0.0,
        "sectors": 0.0,
        "used_bytes": 0.0,
        "block_size": 64,
        "grid": "EVENTS",
        "targets": {"sm_90": {"occupancy": 1.0}},
    }
    return row | other


def a_report(*kernels: dict[str, Any], input_bytes: float = 1.0) -> dict[str, Any]:
    named = {f"kernel {number}": kernel for number, kernel in enumerate(kernels)}
    return {"kernels": named, "total": {"events": 8, "input_bytes": input_bytes}}


def of_one(assumptions: Assumptions = NEUTRAL, **kernel: Any) -> KernelEstimate:
    [found] = estimate(a_report(a_kernel(**kernel)), assumptions).kernels.values()
    return found


def test_with_all_warps_the_schedulers_are_the_bound() -> None:
    assert of_one().bound == "issue"
    assert of_one().seconds == pytest.approx(1000 / (4 * CYCLES))
    assert of_one(replace(NEUTRAL, issue_share=0.5)).seconds == pytest.approx(1000 / (2 * CYCLES))


def test_with_few_warps_latency_is_the_bound() -> None:
    # 8 warps of a multiprocessor, one instruction each in 4 cycles: 2 per cycle, with 4 possible.
    few = of_one(targets={"sm_90": {"occupancy": 0.125}})
    assert few.bound == "latency"
    assert few.seconds == pytest.approx(1000 / (2 * CYCLES))


def test_accesses_to_memory_and_barriers_make_warps_wait() -> None:
    assert of_one(global_instructions=1000.0).seconds == pytest.approx(40 * 1000 / (64 * CYCLES))
    waiting = replace(NEUTRAL, barrier_cycles=1000)
    assert of_one(waiting, barriers=10.0).seconds == pytest.approx((4 * 1000 + 10 * 2 * 1000) / (64 * CYCLES))


def test_sectors_over_the_bandwidth_are_a_bound() -> None:
    moved = of_one(sectors=1e5, used_bytes=1e6)
    assert moved.bound == "memory"
    assert moved.seconds == pytest.approx(3.2e6 / 3.35e12)
    cached = replace(NEUTRAL, moves_whole_sectors=False)
    assert of_one(cached, sectors=1e5, used_bytes=1e6).seconds == pytest.approx(1e6 / 3.35e12)
    # Several lanes accessed the same bytes.
    assert of_one(cached, sectors=1e5, used_bytes=9e6).seconds == pytest.approx(3.2e6 / 3.35e12)


def test_instructions_of_the_machine_count_where_they_are_known() -> None:
    assumed = replace(NEUTRAL, machine_per_ptx=1.5)
    assert of_one(assumed).seconds == pytest.approx(1500 / (4 * CYCLES))
    assert of_one(assumed, machine_per_ptx=1.25).seconds == pytest.approx(1250 / (4 * CYCLES))


def test_blocks_of_mfps_are_shared_by_the_events_of_a_full_mep() -> None:
    full = replace(NEUTRAL, shares_blocks_of_meps=True)
    assert of_one(full, grid="ROWS").seconds == pytest.approx(of_one().seconds / 8)
    assert of_one(full).seconds == of_one().seconds


def test_kernels_run_one_after_the_other_and_beside_the_copies() -> None:
    report = a_report(a_kernel(), a_kernel(warp_instructions=3000.0))
    assert estimate(report, NEUTRAL).events_per_second == pytest.approx(4 * CYCLES / 4000)
    report = a_report(a_kernel(), input_bytes=1e6)
    assert estimate(report, NEUTRAL).events_per_second == pytest.approx(1e12 / 1e6)


def test_the_slow_end_is_slower_for_every_kernel() -> None:
    kernel = a_kernel(global_instructions=50.0, barriers=10.0, sectors=1000.0, used_bytes=9000.0)
    report = a_report(kernel, {**kernel, "grid": "ROWS"})
    slow, fast = estimate(report, SLOW), estimate(report, FAST)
    assert all(slow.kernels[name].seconds > fast.kernels[name].seconds for name in report["kernels"])
    assert slow.events_per_second < fast.events_per_second


def test_the_table_says_that_it_is_an_estimate() -> None:
    console = Console(width=200, record=True)
    print_estimate("retina", a_report(a_kernel()), console)
    text = console.export_text()
    assert "ESTIMATE for H100 SXM, not measured" in text
    assert "events/s" in text


@pytest.mark.parametrize(
    ("measured", "said"),
    [
        (5.0, "2.5 times slower than estimated"),
        (1.5, "as estimated"),
        (0.5, "2.0 times faster than estimated"),
        (2.0 + 5e-10, "as estimated"),
    ],
)
def test_a_measurement_is_compared_with_both_ends(measured: float, said: str) -> None:
    assert verdict(measured, fast=1.0, slow=2.0) == said


def test_the_comparison_has_all_kernels_their_sum_and_the_rate() -> None:
    report = a_report(a_kernel(), a_kernel())
    slow = estimate(report, SLOW)
    measured = {name: 3 * kernel.seconds for name, kernel in slow.kernels.items()}
    section = comparison("real, retina", report, measured, events_per_second=slow.events_per_second)
    assert [row[0] for row in section.rows] == ["kernel 0", "kernel 1", "all kernels", "slots that overlap"]
    assert [row[5] for row in section.rows[:3]] == ["3.0 times slower than estimated"] * 3
    assert section.data["slots that overlap"]["difference"] == "as estimated"


def test_instructions_are_counted_without_padding_and_comments() -> None:
    listing = """
//--------------------- .text.first    --------------------------
.text.first:
        /*0000*/                   LDC R1, c[0x0][0x28] ;
        /*0060*/               @P0 EXIT ;
        /*0070*/              @!UP0 UIADD3 UR4, UR4, 0x1, URZ ;
.L_x_1:
        /*0080*/                   BRA `(.L_x_1);
        /*0090*/                   NOP;
//--------------------- .text.second_one    --------------------------
        /*0000*/                   EXIT ;
"""
    assert count_instructions(listing) == {"first": 4, "second_one": 1}
