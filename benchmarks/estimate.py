"""An estimate, no measurement: how many events per second a GPU takes, from the counts of device_code.py.

A kernel is as slow as the slowest of three things. *Issue*: the schedulers start one instruction of a warp per cycle at
most. *Latency*: a warp starts its next instruction when the one before has gone far enough, and the number of warps is
limited (occupancy). *Memory*: what is moved, over the bandwidth. Kernels of a batch run one after the other, so that
their times add up; the copy of the events to the device goes on beside them and is a bound of its own.

`SLOW` and `FAST` are two sets of assumptions between which the truth is expected; the section "Estimate" of
docs/performance/gpu-device-code.md says why. Not in either: starts of kernels (about 2 µs each, in batches of thousands
of events), blocks that wait for the densest event of a batch, other work on the device.
"""

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from rich.console import Console
from rich.table import Table

SECTOR_BYTES = 32


@dataclass(frozen=True, slots=True)
class Gpu:
    """What is known of a GPU."""

    name: str
    architecture: str
    multiprocessors: int
    schedulers: int
    """Of each multiprocessor."""
    warps: int
    """Most warps of a multiprocessor."""
    clock_hz: float
    memory_bytes_per_s: float


H100 = Gpu("H100 SXM", "sm_90", 132, 4, 64, 1.7e9, 3.35e12)
"""NVIDIA, "NVIDIA H100 Tensor Core GPU Architecture" (2022), table 3; a clock that is held under load."""

MEMORY_BYTES_PER_S: Mapping[str, float] = {"H100": H100.memory_bytes_per_s, "A5000": 768e9}
"""NVIDIA, "NVIDIA RTX A5000" (datasheet, 2021): 24 GB of GDDR6."""


@dataclass(frozen=True, slots=True)
class Assumptions:
    """What is not known."""

    name: str
    issue_share: float
    """Of the cycles of a scheduler that start an instruction, where enough warps are ready."""
    machine_per_ptx: float
    """Instructions of the machine for each of PTX, where no disassembler has counted them."""
    dependent_cycles: float
    """From one instruction of a warp to its next, arithmetic and shared memory together."""
    global_cycles: float
    """The same behind an access to global memory."""
    barrier_cycles: float
    """That a warp waits at a barrier."""
    moves_whole_sectors: bool
    """Whether all sectors come from the memory of the device, or each used byte once and the rest from caches."""
    shares_blocks_of_meps: bool
    """Whether MEPs have an event for each thread of the kernels with a block for each MFP, so that the block serves all
    of them."""
    host_bytes_per_s: float
    """Copy to the device."""


SLOW = Assumptions("slow", 0.5, 1.5, 8, 260, 60, True, False, 22e9)
FAST = Assumptions("fast", 0.8, 1.0, 4, 40, 20, False, True, 50e9)


@dataclass(frozen=True, slots=True)
class KernelEstimate:
    """Seconds per event by each bound."""

    issue: float
    latency: float
    memory: float

    @property
    def seconds(self) -> float:
        """Of the bound that holds."""
        return max(self.issue, self.latency, self.memory)

    @property
    def bound(self) -> str:
        """Its name."""
        return max(("issue", "latency", "memory"), key=lambda name: float(getattr(self, name)))


@dataclass(frozen=True, slots=True)
class Estimate:
    """Of a chain, per event."""

    kernels: Mapping[str, KernelEstimate]
    copy: float
    """Seconds per event of the copy to the device."""

    @property
    def kernel_seconds(self) -> float:
        """Of all kernels, one after the other."""
        return sum(kernel.seconds for kernel in self.kernels.values())

    @property
    def events_per_second(self) -> float:
        """Kernels and copies of different slots at the same time."""
        return 1 / max(self.kernel_seconds, self.copy)


def bandwidth_floor(report: Mapping[str, Any]) -> dict[str, float]:
    """Events per second of each GPU that its memory allows: no fewer bytes can be moved where each kernel reads what it
    needs once and writes what it makes once, and nothing stays in a cache from one kernel to the next."""
    moved = report["total"]["read_bytes"] + report["total"]["written_bytes"]
    return {name: bytes_per_s / moved for name, bytes_per_s in MEMORY_BYTES_PER_S.items()}


def estimate(report: Mapping[str, Any], assumptions: Assumptions, gpu: Gpu = H100) -> Estimate:
    """`report`: kernels and total of one chain, as `python -m benchmarks device_code --json` writes them."""
    total = report["total"]
    kernels = {name: _kernel(row, int(total["events"]), assumptions, gpu) for name, row in report["kernels"].items()}
    return Estimate(kernels, total["input_bytes"] / assumptions.host_bytes_per_s)


def _kernel(row: Mapping[str, Any], events: int, assumed: Assumptions, gpu: Gpu) -> KernelEstimate:
    factor = row["machine_per_ptx"] or assumed.machine_per_ptx
    shared_by = 1.0
    if row["grid"] == "ROWS" and assumed.shares_blocks_of_meps:
        shared_by = max(1.0, row["block_size"] / events)
    instructions = factor * row["warp_instructions"] / shared_by
    accesses = row["global_instructions"] / shared_by
    warps_of_block = -(-row["block_size"] // 32)
    warp_cycles = (
        (instructions - accesses) * assumed.dependent_cycles
        + accesses * assumed.global_cycles
        + row["barriers"] * warps_of_block * assumed.barrier_cycles
    )
    resident = row["targets"][gpu.architecture]["occupancy"] * gpu.warps
    cycles_per_s = gpu.clock_hz * gpu.multiprocessors
    sector_bytes = SECTOR_BYTES * row["sectors"]
    moved = sector_bytes if assumed.moves_whole_sectors else min(sector_bytes, row["used_bytes"])
    return KernelEstimate(
        issue=instructions / (gpu.schedulers * assumed.issue_share * cycles_per_s),
        latency=warp_cycles / (resident * cycles_per_s),
        memory=moved / gpu.memory_bytes_per_s,
    )


def print_estimate(title: str, report: Mapping[str, Any], console: Console, gpu: Gpu = H100) -> None:
    """One table: kernels with their bounds, and events per second."""
    slow, fast = (estimate(report, assumed, gpu) for assumed in (SLOW, FAST))
    table = Table(
        *("kernel", "slow: ns/event", "bound", "issue", "latency", "memory", "fast: ns/event", "bound", "issue"),
        *("latency", "memory"),
        title=f"{title}: ESTIMATE for {gpu.name}, not measured (docs/performance/gpu-device-code.md, Estimate)",
    )
    for name in report["kernels"]:
        cells = []
        for kernel in (slow.kernels[name], fast.kernels[name]):
            numbers = (kernel.seconds, kernel.issue, kernel.latency, kernel.memory)
            first, *others = (f"{1e9 * seconds:,.1f}" for seconds in numbers)
            cells += [first, kernel.bound, *others]
        table.add_row(name, *cells)
    for what, one, other in (
        ("all kernels", slow.kernel_seconds, fast.kernel_seconds),
        ("copy to the device", slow.copy, fast.copy),
    ):
        table.add_row(what, f"{1e9 * one:,.1f}", "", "", "", "", f"{1e9 * other:,.1f}")
    table.add_row("events/s", f"{slow.events_per_second:,.0f}", *[""] * 4, f"{fast.events_per_second:,.0f}")
    console.print(table)
