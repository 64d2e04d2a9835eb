"""The memory plan of the sequence, for `hltnode inspect --plan`."""

from typing import Any

from rich.console import Console
from rich.table import Table

from hltnode.processing.framework.declaration import AlgorithmSequence
from hltnode.processing.framework.limits import BatchLimits
from hltnode.processing.framework.memory_plan import MemoryPlan, plan_memory

MIB = 1 << 20
FUSES_EVENTS = {"cuda": False, "cpu": True}
"""Back ends; True: fuses algorithms, so that an event passes several of them before the next event."""


def plan_report(sequence: AlgorithmSequence, limits: BatchLimits) -> dict[str, Any]:
    """The JSON object of `hltnode inspect --plan`; values outside `backends` describe a CUDA device."""
    backends = {
        name: _of_backend(
            plan_memory(sequence, limits, fuse_events=fuses),
            plan_memory(sequence, limits, retain="all", fuse_events=fuses),
        )
        for name, fuses in FUSES_EVENTS.items()
    }
    return {
        "limits": {
            "events": limits.events,
            "meps": limits.meps,
            "input_bytes": limits.input_bytes,
            "rows": limits.rows,
        },
        **{key: backends["cuda"][key] for key in ("bytes_per_slot", "bytes_per_event", "algorithms")},
        "backends": backends,
    }


def _of_backend(plan: MemoryPlan, unshared: MemoryPlan) -> dict[str, Any]:
    peak, columns = plan.peak
    threads = {region.column.name: region.nbytes for region in plan.thread.regions}
    return {
        "bytes_per_slot": plan.slot_bytes,
        "bytes_per_event": plan.memory.per_event,
        "bytes_per_thread": plan.memory.thread,
        "pinned_bytes": plan.memory.pinned,
        "list_bytes": plan.mapped_bytes,
        "constant_bytes": plan.constant_bytes,
        "unshared": {"bytes_per_slot": unshared.slot_bytes, "bytes_per_event": unshared.memory.per_event},
        "peak": {"algorithm": peak, "columns": {region.column.name: region.nbytes for region in columns}},
        "algorithms": [
            {
                "name": algorithm.name,
                "grid": algorithm.grid.name.lower(),
                "parts": algorithm.parts,
                "bytes_in_use": plan.bytes_by_algorithm[algorithm.name],
                "columns": {
                    column.name: threads.get(column.name, column.nbytes(plan.limits))
                    for column in (*algorithm.writes, *algorithm.scratch_columns)
                },
            }
            for algorithm in plan.sequence
        ],
    }


def print_plan(report: dict[str, Any], console: Console) -> None:
    """The report as text tables."""
    limits = report["limits"]
    console.print(f"A batch of {limits['events']} events and {_mib(limits['input_bytes'])} MiB of input")
    totals = Table(
        "back end",
        "MiB / slot",
        "KiB / event",
        "MiB / thread",
        "MiB / slot, nothing shared",
        "MiB / slot, lists",
    )
    for name, found in report["backends"].items():
        totals.add_row(
            name,
            _mib(found["bytes_per_slot"]),
            f"{found['bytes_per_event'] / 1024:.1f}",
            _mib(found["bytes_per_thread"]),
            _mib(found["unshared"]["bytes_per_slot"]),
            _mib(found["list_bytes"]),
        )
    console.print(totals)
    table = Table(title="Arena of a slot, MiB")
    table.add_column("algorithm", no_wrap=True)
    for heading in ("over", "cuda", "cuda, written", "cpu"):
        table.add_column(heading)
    by_cpu = {algorithm["name"]: algorithm for algorithm in report["backends"]["cpu"]["algorithms"]}
    peak = report["backends"]["cuda"]["peak"]
    for algorithm in report["algorithms"]:
        table.add_row(
            algorithm["name"],
            algorithm["grid"] if algorithm["parts"] is None else f"{algorithm['parts']} parts",
            _mib(algorithm["bytes_in_use"]),
            _mib(sum(algorithm["columns"].values())),
            _mib(by_cpu[algorithm["name"]]["bytes_in_use"]),
            style="bold" if algorithm["name"] == peak["algorithm"] else None,
        )
    console.print(table)
    columns = Table("column", "MiB", title=f"In use on a device during {peak['algorithm']}")
    for name, nbytes in sorted(peak["columns"].items(), key=lambda item: -item[1]):
        columns.add_row(name, _mib(nbytes))
    console.print(columns)


def _mib(nbytes: int) -> str:
    return f"{nbytes / MIB:.1f}"
