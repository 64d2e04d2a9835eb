"""Scans the block size of each kernel: `python -m benchmarks device_code --block-sizes [--json FILE]`.

The kernels' PTX is executed on the real events with blocks of 32, 64, 128 and 256 threads (command.py), and ptxas gives
the registers and the shared memory of each device. The times are an ESTIMATE from these counts (estimate.py), with one
bound more: a block keeps its place on the multiprocessor until its slowest warp ends. On a machine with a GPU the same
command measures the kernels, too, and marks these times with "gpu".

The table is in Markdown. "declared" marks the block size that the algorithm declares, "large" that of its launch for
large events, "best" the lowest mean of both ends of the estimate on a device.
"""

import json
from collections.abc import Mapping, Sequence
from dataclasses import asdict, dataclass, replace
from pathlib import Path
from typing import Any

import pytest

from benchmarks.device_code.command import DeviceCode
from benchmarks.device_code.estimate import FAST, H100, RTX_3090, SLOW, Assumptions, Gpu, estimate
from benchmarks.gpu import samples
from benchmarks.gpu.kernel_times import measure
from benchmarks.lhcb.real_events import CHAIN, REAL_FILES, geometry_folder, real_file
from hltnode.daemon.commands.result_files import ResultParser
from hltnode.processing.framework.backends.cuda import CudaBackend
from hltnode.processing.framework.backends.interface import BackendError
from hltnode.processing.framework.declaration import Algorithm, Grid
from hltnode.processing.framework.event_files import read_events
from hltnode.processing.framework.offline_runner import encode_mep
from tests.processing.lhcb.whole_chain import reference_of

BLOCK_SIZES = (32, 64, 128, 256)
GPUS = (H100, RTX_3090)
MEASURED_TIMES, MEASURED_MEPS, MEASURED_BATCHES = 9, 16, 10
"""Repetitions of the real events in a MEP, MEPs in a batch and batches, for a measurement on a GPU."""


@dataclass(frozen=True, slots=True)
class OnDevice:
    """A kernel with one block size on a device: registers of a thread, occupancy, and seconds per event of the slow
    and the fast end of the estimate."""

    registers: int
    occupancy: float
    slow: float
    fast: float

    @property
    def mean(self) -> float:
        """Seconds per event that decide which block size is best."""
        return (self.slow + self.fast) / 2


@dataclass(frozen=True, slots=True)
class Row:
    """A kernel with one block size: counts per event, bytes of shared memory of a block, devices by name, and the
    measured seconds per event on the GPU of this machine, None without one."""

    kernel: str
    block_size: int
    is_declared: bool
    is_for_large: bool
    warp_instructions: float
    active_lanes: float
    barriers: float
    path: float
    shared_bytes: int
    devices: Mapping[str, OnDevice]
    measured: float | None = None


def seconds_of(row: Mapping[str, Any], events: int, assumed: Assumptions, gpu: Gpu) -> float:
    """Seconds per event of a kernel (DeviceCode.describe): the largest bound of the estimate, and that of its blocks.

    The estimate's latency is that of the mean warp. Where an event is a block, warps that end early leave their places
    empty until the slowest one ends, so the number of warps times the path counts instead of the instructions.
    """
    report = {"kernels": {"": row}, "total": {"events": events, "input_bytes": 0.0}}
    kernel = estimate(report, assumed, gpu).kernels[""]
    if row["grid"] != Grid.EVENTS.name:
        return kernel.seconds
    warps: int = -(-row["block_size"] // 32)
    places: float = warps * row["path"] / row["warp_instructions"]
    return max(kernel.seconds, kernel.latency * places)


def row_of(algorithm: Algorithm, described: Mapping[str, Any], events: int) -> Row:
    """`described`: the algorithm with the block size of the row (DeviceCode.describe)."""
    size, large = described["block_size"], algorithm.large_events
    devices = {}
    for gpu in GPUS:
        target = described["targets"][gpu.architecture]
        slow, fast = (seconds_of(described, events, assumed, gpu) for assumed in (SLOW, FAST))
        devices[gpu.name] = OnDevice(target["registers"], target["occupancy"], slow, fast)
    return Row(
        algorithm.name,
        size,
        is_declared=size == algorithm.block_size,
        is_for_large=large is not None and size == large.block_size,
        **{name: described[name] for name in ("warp_instructions", "active_lanes", "barriers", "path", "shared_bytes")},
        devices=devices,
    )


def count(shared: Path, sequence: str, encoding: str) -> list[Row]:
    """The rows of a sequence, kernel after kernel, for an encoding of the VELO.

    Raises RuntimeError for missing tools or events.
    """
    try:
        code = DeviceCode(sequence, architectures=[gpu.architecture.removeprefix("sm_") for gpu in GPUS])
    except pytest.skip.Exception as missing:
        raise RuntimeError(str(missing)) from missing
    mep = encode_mep(CHAIN.with_sequence(sequence), list(read_events(real_file(shared, encoding))), encoding=encoding)
    reference = reference_of(mep, geometry_folder(shared), sequence)
    costs = {size: code.launched(reference, block_size=size).costs(mep.n_events) for size in BLOCK_SIZES}
    return [
        row_of(
            algorithm,
            code.describe(
                replace(algorithm, block_size=size), costs[size][algorithm.name], costs[size][algorithm.name]
            ),
            mep.n_events,
        )
        for algorithm in CHAIN.sequences[sequence].algorithms
        for size in BLOCK_SIZES
    ]


def measured(shared: Path, sequence: str, encoding: str) -> dict[tuple[str, int], float]:
    """Seconds per event by kernel and block size. Raises BackendError without a GPU."""
    events = list(read_events(real_file(shared, encoding))) * MEASURED_TIMES
    mep = encode_mep(CHAIN.with_sequence(sequence), events, encoding=encoding)
    sample = samples.Sample(sequence, mep, geometry_folder(shared), sequence)
    found: dict[tuple[str, int], float] = {}
    for size in BLOCK_SIZES:
        engine = samples.engine_of(CudaBackend(CHAIN.kernels, block_size=size), sample, MEASURED_MEPS)
        workspace = engine.create_workspace()
        samples.fill(workspace, [sample.mep] * MEASURED_MEPS)
        found |= {(kernel, size): seconds for kernel, seconds in measure(workspace, MEASURED_BATCHES).items()}
        engine.close()
    return found


def best_of(rows: Sequence[Row], device: str) -> Mapping[str, Row]:
    """The row of each kernel with the lowest estimate on a device; of equal ones that with the smallest block."""
    best: dict[str, Row] = {}
    for row in rows:
        if row.kernel not in best or row.devices[device].mean < best[row.kernel].devices[device].mean:
            best[row.kernel] = row
    return best


def table_of(rows: Sequence[Row], gpu: str | None) -> list[str]:
    """The lines of a table in Markdown, and one with the sums. `gpu`: the device of measured times."""
    best = {device.name: best_of(rows, device.name) for device in GPUS}
    header = ["kernel", "threads", "", "instructions", "lanes", "barriers", "path", "shared", "registers"]
    for device in GPUS:
        header += [f"{device.name}: occupancy", "ns, estimate"]
    header += [f"ns, gpu: {gpu}"] if gpu else []
    lines = [f"| {' | '.join(header)} |", "|---" * len(header) + "|"]
    for row in rows:
        cells = [
            row.kernel,
            str(row.block_size),
            ", ".join(["declared"] * row.is_declared + ["large"] * row.is_for_large),
            f"{row.warp_instructions:,.0f}",
            f"{row.active_lanes:.1f}",
            f"{row.barriers:,.0f}",
            f"{row.path:,.0f}",
            f"{row.shared_bytes:,}",
            " / ".join(str(on.registers) for on in row.devices.values()),
        ]
        for name, on in row.devices.items():
            is_best = best[name][row.kernel] is row
            cells += [f"{on.occupancy:.0%}", f"{1e9 * on.slow:,.1f} to {1e9 * on.fast:,.1f}{', best' * is_best}"]
        if gpu:
            cells.append("" if row.measured is None else f"{1e9 * row.measured:,.1f}")
        lines.append(f"| {' | '.join(cells)} |")
    return lines


def totals_of(rows: Sequence[Row]) -> list[str]:
    """Sums over the kernels, one line for each device. A kernel whose declared size is not scanned is left out."""
    lines = []
    for device in GPUS:
        best = best_of(rows, device.name)
        declared = {row.kernel: row for row in rows if row.is_declared}
        sums = [
            sum(1e9 * getattr(of[kernel].devices[device.name], end) for kernel in declared)
            for of in (declared, best)
            for end in ("slow", "fast")
        ]
        lines.append(
            f"{device.name}, estimate: {sums[0]:,.0f} to {sums[1]:,.0f} ns per event with the declared sizes, "
            f"{sums[2]:,.0f} to {sums[3]:,.0f} ns with the best ones"
        )
    return lines


def main(arguments: Sequence[str], shared: Path) -> None:
    """Print the table; write the rows to a file."""
    parser = ResultParser(prog="python -m benchmarks device_code --block-sizes", description=__doc__)
    parser.add_result_file("--json", help="file for the rows")
    parser.add_argument("--sequence", default="velo", choices=CHAIN.sequences, help="the sequence; default: velo")
    parser.add_argument("--encoding", default="retina", choices=REAL_FILES, help="of the VELO; default: retina")
    options = parser.parse_args(arguments)
    rows = count(shared, options.sequence, options.encoding)
    gpu = None
    try:
        gpu = CudaBackend(CHAIN.kernels).description
        times = measured(shared, options.sequence, options.encoding)
        rows = [replace(row, measured=times.get((row.kernel, row.block_size))) for row in rows]
    except BackendError as error:
        print(f"Not measured: {error}\n")
    print("\n".join([*table_of(rows, gpu), "", *totals_of(rows)]))
    if options.json is not None:
        options.json.write_text(json.dumps([asdict(row) for row in rows], indent=1) + "\n")
