"""Launch parameters of kernels on a GPU, without one: `python -m benchmarks device_code --block-sizes 32 64 128 256`.

Counted and estimated, not measured: the PTX of the kernels runs on the real events with each block size (tests/ptx),
and must give the results of the CPU. Counted are instructions of warps, their active lanes and the path of a block, the
instructions of its slowest warp. The time is the estimate of estimate.py with slow and fast assumptions. It knows the
blocks that a multiprocessor holds, but neither starts of kernels nor caches.

A CPU has no block sizes: one thread computes the block of an event.
"""

from collections.abc import Mapping, Sequence
from dataclasses import replace
from typing import Any

from rich.table import Table

from benchmarks.device_code.estimate import FAST, SLOW, estimate
from hltnode.processing.framework.declaration import Algorithm

BLOCK_SIZES = (32, 64, 128, 256)
MAIN_KERNELS = 12

Rows = Mapping[str, Mapping[int, Mapping[str, Any]]]
"""By kernel and block size; the largest kernels first."""


def with_block_size(algorithm: Algorithm, block_size: int) -> Algorithm:
    """The algorithm with one launch of this block size for all events."""
    return replace(algorithm, block_size=block_size, large_events=None)


def rows_of(reports: Mapping[int, Mapping[str, Any]], usual: Mapping[str, int], largest: int = MAIN_KERNELS) -> Rows:
    """The kernels that take longest with their own block size by the slow estimate.

    reports: by block size, as DeviceCode.report writes them. usual: the declared block size of each kernel; the nearest
    counted one stands for it.
    """
    times = {size: [estimate(report, assumed).kernels for assumed in (SLOW, FAST)] for size, report in reports.items()}
    found: dict[str, dict[int, dict[str, Any]]] = {}
    for name, own in usual.items():
        found[name] = {
            size: {
                **{key: report["kernels"][name][key] for key in ("warp_instructions", "active_lanes", "path")},
                "occupancy": report["kernels"][name]["targets"]["sm_90"]["occupancy"],
                "slow_ns": round(1e9 * times[size][0][name].seconds, 2),
                "fast_ns": round(1e9 * times[size][1][name].seconds, 2),
                "is_declared": size == nearest(own, reports),
            }
            for size, report in reports.items()
        }
    order = sorted(found, key=lambda name: -next(row["slow_ns"] for row in found[name].values() if row["is_declared"]))
    return {name: found[name] for name in order[:largest]}


def nearest(size: int, counted: Sequence[int] | Mapping[int, object]) -> int:
    """The counted block size that is nearest by ratio; of two, the smaller one."""
    return min(sorted(counted), key=lambda other: max(size / other, other / size))


def table_of(rows: Rows, title: str) -> Table:
    """Path and estimated ns of an event by block size; * marks the declared size."""
    sizes = list(next(iter(rows.values())))
    table = Table(
        "kernel",
        *(f"{size}: path" for size in sizes),
        *(f"{size}: lanes" for size in sizes),
        *(f"{size}: ns, slow to fast" for size in sizes),
        title=f"{title}: COUNTED and ESTIMATED for an H100 by threads per block, not measured; * as declared",
    )
    for name, by_size in rows.items():
        marks = {size: "*" if row["is_declared"] else "" for size, row in by_size.items()}
        table.add_row(
            name,
            *(f"{row['path']:,.0f}" for row in by_size.values()),
            *(f"{row['active_lanes']:.1f}" for row in by_size.values()),
            *(f"{row['slow_ns']:,.0f} to {row['fast_ns']:,.0f}{marks[size]}" for size, row in by_size.items()),
        )
    return table
