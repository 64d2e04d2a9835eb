"""Compares the time of each kernel with the range of the estimate."""

from collections.abc import Mapping
from typing import Any

from benchmarks.device_code.estimate import FAST, H100, SLOW, estimate
from benchmarks.gpu.report import Section
from hltnode.processing.algorithms.deliver_lists import DELIVERING
from hltnode.processing.selection.select_lines import NAME as SELECT_LINES_KERNEL

NOT_COUNTED = frozenset({SELECT_LINES_KERNEL, *(algorithm.name for algorithm in DELIVERING)})
UNNOTICED = 1e-9
"""Smaller differences (s per event) are ignored: kernel starts, which the estimate omits, take as much."""


def verdict(measured: float, fast: float, slow: float) -> str:
    """The comparison in words."""
    if measured > slow + UNNOTICED:
        return f"{measured / slow:.1f} times slower than estimated"
    if measured < fast - UNNOTICED:
        return f"{fast / measured:.1f} times faster than estimated"
    return "as estimated"


def comparison(name: str, report: Mapping[str, Any], seconds: Mapping[str, float], events_per_second: float) -> Section:
    """`report`: counts of the same chain (device_code.py); `seconds`: measured time per event by kernel; and the
    measured rate of the slots. The kernel of the lines is generated from the trigger file, and those of output lists
    follow it: neither the counts nor this table include them."""
    slow, fast = estimate(report, SLOW), estimate(report, FAST)
    seconds = {kernel: one for kernel, one in seconds.items() if kernel not in NOT_COUNTED}
    lines = [
        (kernel, one, fast.kernels[kernel].seconds, slow.kernels[kernel].seconds, slow.kernels[kernel].bound)
        for kernel, one in seconds.items()
    ]
    lines.append(("all kernels", sum(seconds.values()), fast.kernel_seconds, slow.kernel_seconds, ""))
    whole = (1 / events_per_second, 1 / fast.events_per_second, 1 / slow.events_per_second)
    lines.append(("slots that overlap", *whole, ""))
    return Section(
        title=f"Against the estimate: {name}",
        text=f"Estimated for {H100.name} (docs/performance/gpu-device-code.md, Estimate). Slots that overlap: "
        f"{events_per_second:,.0f} events/s, estimated {slow.events_per_second:,.0f} to {fast.events_per_second:,.0f}.",
        header=("what", "measured, ns per event", "fast", "slow", "bound by (slow)", "difference"),
        rows=[
            (what, f"{1e9 * one:,.1f}", f"{1e9 * low:,.1f}", f"{1e9 * high:,.1f}", bound, verdict(one, low, high))
            for what, one, low, high, bound in lines
        ],
        data={
            what: {"measured": one, "fast": low, "slow": high, "difference": verdict(one, low, high)}
            for what, one, low, high, _ in lines
        },
    )
