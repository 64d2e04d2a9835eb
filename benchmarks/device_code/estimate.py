"""Estimates, not measures, the events per second of a GPU from the counts of device_code.py.

The slowest of three bounds gives the time of a kernel. *Issue*: the schedulers start at most one warp instruction per
cycle. *Latency*: a warp starts its next instruction after a latency, and the number of warps is limited (occupancy).
*Memory*: moved bytes over bandwidth. Kernels of a batch run one after the other, so their times add up. The copy of the
events to the device runs in parallel and is a separate bound.

`SLOW` and `FAST` are two sets of assumptions that should enclose the truth; the section "Estimate" of
docs/performance/gpu-device-code.md explains them. Neither includes starts of kernels (about 2 µs each, in batches of
thousands of events), blocks that wait for the densest event of a batch, or other work on the device.
"""

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from rich.console import Console
from rich.table import Table

SECTOR_BYTES = 32


@dataclass(frozen=True, slots=True)
class Gpu:
    """Known properties of a GPU."""

    name: str
    architecture: str
    multiprocessors: int
    schedulers: int
    """Of each multiprocessor."""
    warps: int
    """Maximum number of warps of a multiprocessor."""
    clock_hz: float
    memory_bytes_per_s: float


H100 = Gpu("H100 SXM", "sm_90", 132, 4, 64, 1.7e9, 3.35e12)
"""NVIDIA, "NVIDIA H100 Tensor Core GPU Architecture" (2022), table 3; a clock that it sustains under load."""

RTX_3090 = Gpu("RTX 3090", "sm_86", 82, 4, 48, 1.695e9, 936e9)
"""NVIDIA, "NVIDIA Ampere GA102 GPU Architecture" (2021), appendix A; its boost clock."""

MEMORY_BYTES_PER_S: Mapping[str, float] = {"H100": H100.memory_bytes_per_s, "A5000": 768e9}
"""NVIDIA, "NVIDIA RTX A5000" (datasheet, 2021): 24 GB of GDDR6."""


@dataclass(frozen=True, slots=True)
class Assumptions:
    """Assumptions."""

    name: str
    issue_share: float
    """Fraction of the cycles in which a scheduler starts an instruction, if enough warps are ready."""
    machine_per_ptx: float
    """Machine instructions per PTX instruction, without a disassembler that counts them."""
    dependent_cycles: float
    """Cycles from one instruction of a warp to the next, for arithmetic and shared memory."""
    global_cycles: float
    """Cycles after an access to global memory."""
    barrier_cycles: float
    """Cycles that a warp waits at a barrier."""
    moves_whole_sectors: bool
    """Whether all sectors come from device memory; otherwise each used byte comes once, the rest from caches."""
    shares_blocks_of_meps: bool
    """Whether MEPs have an event for each thread of kernels with one block per MFP, so that all threads work."""
    host_bytes_per_s: float
    """Bandwidth of the copy to the device."""


SLOW = Assumptions("slow", 0.5, 1.5, 8, 260, 60, True, False, 22e9)
FAST = Assumptions("fast", 0.8, 1.0, 4, 40, 20, False, True, 50e9)


@dataclass(frozen=True, slots=True)
class KernelEstimate:
    """Seconds per event from each bound."""

    issue: float
    latency: float
    memory: float

    @property
    def seconds(self) -> float:
        """Seconds per event of the largest bound."""
        return max(self.issue, self.latency, self.memory)

    @property
    def bound(self) -> str:
        """Name of the largest bound."""
        return max(("issue", "latency", "memory"), key=lambda name: float(getattr(self, name)))


@dataclass(frozen=True, slots=True)
class Estimate:
    """Estimate for a chain, per event."""

    kernels: Mapping[str, KernelEstimate]
    copy: float
    """Seconds per event of the copy to the device."""

    @property
    def kernel_seconds(self) -> float:
        """Seconds per event of all kernels, one after the other."""
        return sum(kernel.seconds for kernel in self.kernels.values())

    @property
    def events_per_second(self) -> float:
        """Rate with kernels and copies of different slots at the same time."""
        return 1 / max(self.kernel_seconds, self.copy)


def bandwidth_floor(report: Mapping[str, Any]) -> dict[str, float]:
    """Events per second that the memory of each GPU allows.

    It assumes that each kernel reads its inputs once and writes its outputs once, and that no data stay in a cache from
    one kernel to the next.
    """
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
