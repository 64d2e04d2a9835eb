"""Counts the cost of kernels on a GPU without using one: `python -m benchmarks device_code [--json FILE]`.

The kernels' PTX is executed on the seven real events (tests/ptx), from retina clusters and from super-pixels, with the
block sizes of production; NVRTC's ptxas gives their resources of a multiprocessor. A count is not a time: a PTX
instruction becomes several or no machine instructions (a division about ten, a conversion of an address none); the
disassembler counts them if it is installed. The report also gives the bytes that each kernel must read and write, and
the event rate that the memory of a GPU allows. The dense event has the clusters of all seven; for a sequence with a
global event cut it is the largest of the seven. An estimate of events per second follows (estimate.py).

`python -m benchmarks device_code --chain alice_tpc` compares the schedules of the tracklet constructor of ALICE's TPC
(tpc_device_code.py). With `--chain km3net` or `mu3e` the report has an estimate beside published times
(stream_device_code.py). With `--block-sizes` it compares block sizes (block_sizes.py).
"""

import json
from collections.abc import Mapping, Sequence
from copy import copy
from pathlib import Path
from typing import Any, Self

import pytest
from rich.console import Console
from rich.table import Table

from benchmarks.device_code.estimate import bandwidth_floor, print_estimate
from benchmarks.device_code.machine_code import disassembler, machine_instructions
from benchmarks.lhcb.real_events import CHAIN, REAL_FILES, geometry_folder, real_file
from hltnode.daemon.commands.result_files import ResultParser
from hltnode.processing.framework.backends.cuda_kernels import compile_kernels
from hltnode.processing.framework.declaration import Algorithm, AlgorithmSequence
from hltnode.processing.framework.event_files import read_events
from hltnode.processing.framework.offline_runner import EncodedMep, encode_mep
from hltnode.processing.selection.trigger_chain import TriggerChain
from tests.processing.chains.reference import Reference
from tests.processing.framework.nvrtc_library import nvrtc_of
from tests.processing.lhcb.velo.dense_events import overlaid
from tests.processing.lhcb.whole_chain import reference_of
from tests.ptx.chain import KernelCost, PtxLauncher
from tests.ptx.kernels import CUDA_VERSION, machine_of, module_of
from tests.ptx.machine import NO_BLOCK
from tests.ptx.nvrtc import Resources, resources
from tests.ptx.occupancy import MULTIPROCESSORS

Report = Mapping[str, Any]
"""Kernels and their total, as in the JSON file."""

COUNTED_FOR = "90"
"""Architecture of the executed PTX."""
ARCHITECTURES = ("80", "90", "100")
"""Architectures whose resources the report has."""


class DeviceCode:
    """The kernels of a sequence of a chain, compiled for GPUs."""

    def __init__(
        self,
        sequence: str = "velo",
        chain: TriggerChain = CHAIN,
        architectures: Sequence[str] = ARCHITECTURES,
    ) -> None:
        self._algorithms = chain.sequences[sequence].algorithms
        nvrtc = nvrtc_of(CUDA_VERSION)
        nvdisasm = disassembler()
        self._machine_instructions: Mapping[str, int] = {}
        """Machine instructions of each kernel; empty without a disassembler."""
        if nvdisasm is not None:
            cubin = compile_kernels(nvrtc, chain.kernels, int(COUNTED_FOR))
            self._machine_instructions = machine_instructions(nvdisasm, cubin)
        self._module = module_of(COUNTED_FOR, chain.kernels)
        self.resources: Mapping[str, Mapping[str, Resources]] = {
            architecture: resources(nvrtc, architecture, chain.kernels) for architecture in architectures
        }

    def of_sequence(self, algorithms: AlgorithmSequence) -> Self:
        """The same compiled kernels, for another sequence of the chain."""
        other = copy(self)
        other._algorithms = algorithms
        return other

    def launched(
        self, reference: Reference, traced_block: int = NO_BLOCK, block_size: int | None = None
    ) -> PtxLauncher:
        """The launches of a batch, with the declared block sizes or all with one. Raises RuntimeError if results differ
        from those of the CPU."""
        machine = machine_of(self._module)
        launcher = PtxLauncher(machine, block_size, traced_block)
        if wrong := reference.differences(launcher, machine.allocate, sizes_apart=True):
            raise RuntimeError(f"PTX gives other results than the CPU: {', '.join(wrong)}")
        return launcher

    def costs(self, reference: Reference) -> dict[str, KernelCost]:
        """Means over the events of a batch. Raises RuntimeError if results differ from those of the CPU."""
        return self.launched(reference).costs(reference.n_events)

    def describe(self, algorithm: Algorithm, cost: KernelCost, dense: KernelCost) -> dict[str, Any]:
        """One kernel, as in the JSON file; values that depend on the architecture are for sm_90."""
        targets = {}
        for architecture, of_kernels in self.resources.items():
            used, multiprocessor = of_kernels[algorithm.kernel], MULTIPROCESSORS[architecture]
            targets[f"sm_{architecture}"] = {
                "registers": used.registers,
                "spills": used.spill_stores + used.spill_loads,
                "stack_bytes": used.stack,
                "shared_bytes": used.shared,
                "occupancy": round(multiprocessor.occupancy(used, algorithm.block_size), 3),
                "blocks_of_64_threads": multiprocessor.blocks_of(used, 64),
            }
        machine = self._machine_instructions.get(algorithm.kernel)
        return {
            "warp_instructions": round(cost.warp_instructions, 1),
            "machine_per_ptx": machine and round(machine / len(self._module.kernels[algorithm.kernel].statements), 3),
            "global_instructions": round(cost.global_instructions, 1),
            "barriers": round(cost.barriers, 1),
            "sectors": round(cost.sectors, 1),
            "used_bytes": round(cost.used_bytes, 1),
            "local_bytes": round(cost.local_bytes, 1),
            "read_bytes": round(cost.read_bytes, 1),
            "written_bytes": round(cost.written_bytes, 1),
            "constant_bytes": round(cost.constant_bytes, 1),
            "active_lanes": round(cost.active_lanes, 1),
            "grid": algorithm.grid.name,
            "path": round(cost.path, 1),
            "path_of_dense_event": round(dense.path, 1),
            "block_size": algorithm.block_size,
            **targets[f"sm_{COUNTED_FOR}"],
            "targets": targets,
        }

    def report(
        self, mep: EncodedMep, costs: Mapping[str, KernelCost], dense: Mapping[str, KernelCost]
    ) -> dict[str, Any]:
        """Kernels and their total. `costs`: means per event of `mep`, `dense`: of one dense event."""
        kernels = {
            algorithm.name: self.describe(algorithm, costs[algorithm.name], dense[algorithm.name])
            for algorithm in self._algorithms
        }
        path, dense_path = (sum(cost.path for cost in of.values()) for of in (costs, dense))
        report = {
            "kernels": kernels,
            "total": {
                "warp_instructions": round(sum(cost.warp_instructions for cost in costs.values()), 1),
                "barriers_longest_path": round(sum(cost.barriers for cost in costs.values()), 1),
                "sectors": round(sum(cost.sectors for cost in costs.values()), 1),
                "events": mep.n_events,
                "input_bytes": round(mep.data.nbytes / mep.n_events, 1),
                "path": round(path, 1),
                "path_of_dense_event": round(dense_path, 1),
                "dense_to_mean_path": round(dense_path / path, 2),
                **{
                    name: round(sum(row[name] for row in kernels.values()), 1)
                    for name in ("read_bytes", "written_bytes")
                },
            },
        }
        floor = {gpu: round(events) for gpu, events in bandwidth_floor(report).items()}
        return report | {"bandwidth_floor_events_per_s": floor}


def print_report(name: str, report: Mapping[str, Any], console: Console) -> None:
    """One table."""
    table = Table(
        *("kernel", "warp instr.", "share", "lanes", "path", "of dense", "barriers", "KiB moved", "used", "threads"),
        "registers",
        *("stack", "spills", "shared", "occupancy", "blocks of 64", "machine/PTX"),
        title=f"{name}: means per event; shared memory for sm_90, what else depends on the GPU for sm_80 / 90 / 100",
    )
    total = report["total"]
    for kernel, row in report["kernels"].items():
        targets = row["targets"].values()
        sector_bytes = 32 * row["sectors"]
        table.add_row(
            kernel,
            f"{row['warp_instructions']:,.0f}",
            f"{row['warp_instructions'] / total['warp_instructions']:.1%}",
            f"{row['active_lanes']:.1f}",
            f"{row['path']:,.0f}",
            f"{row['path_of_dense_event']:,.0f}",
            f"{row['barriers']:,.0f}",
            f"{sector_bytes / 1024:,.1f}",
            f"{row['used_bytes'] / sector_bytes:.0%}" if sector_bytes else "",
            str(row["block_size"]),
            *(" / ".join(str(target[key]) for target in targets) for key in ("registers", "stack_bytes", "spills")),
            str(row["shared_bytes"]),
            " / ".join(f"{target['occupancy']:.0%}" for target in targets),
            " / ".join(str(target["blocks_of_64_threads"]) for target in targets),
            f"{row['machine_per_ptx']:.2f}" if row["machine_per_ptx"] else "",
        )
    paths = (f"{total[name]:,.0f}" for name in ("path", "path_of_dense_event", "barriers_longest_path"))
    table.add_row("total", f"{total['warp_instructions']:,.0f}", "", "", *paths, *[""] * 10)
    console.print(table)


def print_bytes(name: str, report: Mapping[str, Any], console: Console) -> None:
    """One table: bytes that each kernel must move, and the limits from the memory of GPUs."""
    table = Table(
        *("kernel", "KiB read", "KiB written", "share", "constants, KiB a batch", "KiB moved by all accesses"),
        "KiB of local memory",
        title=f"{name}: bytes per event that each kernel reads and writes at least, in sectors that count once",
    )
    total = report["total"]
    least = total["read_bytes"] + total["written_bytes"]
    for kernel, row in report["kernels"].items():
        moved = row["read_bytes"] + row["written_bytes"]
        table.add_row(
            kernel,
            *(f"{row[of] / 1024:,.1f}" for of in ("read_bytes", "written_bytes")),
            f"{moved / least:.1%}",
            *(f"{nbytes / 1024:,.1f}" for nbytes in (row["constant_bytes"], 32 * row["sectors"], row["local_bytes"])),
        )
    table.add_row("total", *(f"{total[of] / 1024:,.1f}" for of in ("read_bytes", "written_bytes")), *[""] * 4)
    for gpu, events in report["bandwidth_floor_events_per_s"].items():
        table.add_row(f"{gpu}: {events:,.0f} events/s at most", *[""] * 6)
    console.print(table)


def count(shared: Path, sequence: str = "velo") -> dict[str, dict[str, Any]]:
    """Kernels and their total for each encoding of the seven real events.

    Raises RuntimeError for missing tools or events.
    """
    try:
        device_code = DeviceCode(sequence)
    except pytest.skip.Exception as missing:
        raise RuntimeError(str(missing)) from missing
    geometry = geometry_folder(shared)
    chain = CHAIN.with_sequence(sequence)
    reports = {}
    for encoding in REAL_FILES:
        events = list(read_events(real_file(shared, encoding)))
        largest = (
            overlaid(events) if sequence == "velo" else max(events, key=lambda it: sum(len(b.payload) for b in it))
        )
        mep, one = (encode_mep(chain, batch, encoding=encoding) for batch in (events, [largest]))
        mean, dense = (device_code.costs(reference_of(some, geometry, sequence)) for some in (mep, one))
        reports[encoding] = device_code.report(mep, mean, dense)
    return reports


def main(arguments: Sequence[str], shared: Path) -> None:
    """Print the tables; write those of retina clusters, and those of super-pixels in it, to a file."""
    parser = ResultParser(prog="python -m benchmarks device_code", description=__doc__)
    parser.add_result_file("--json", help="file for the figures")
    parser.add_argument("--sequence", default="velo", choices=CHAIN.sequences, help="the sequence; default: velo")
    options = parser.parse_args(arguments)
    reports = count(shared, options.sequence)
    console = Console(width=220)
    for encoding, report in reports.items():
        print_report(encoding, report, console)
    for encoding, report in reports.items():
        print_bytes(encoding, report, console)
    for encoding, report in reports.items():
        print_estimate(encoding, report, console)
    if options.json is not None:
        content = {**reports["retina"], "superpixel": reports["superpixel"]}
        options.json.write_text(json.dumps(content, indent=1) + "\n")
