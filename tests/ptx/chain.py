"""Runs the algorithms of a chain by their PTX and says what each kernel costs."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field

import numpy as np
from numpy.typing import NDArray

from hltnode.processing.framework.declaration import Algorithm, Grid
from tests.ptx.machine import Conflict, LaunchRecord, Machine


@dataclass(frozen=True, slots=True)
class KernelCost:
    """What a kernel costs for each event: instructions by warps, and the lanes that were active in all of them; those
    that access global memory, its sectors of 32 bytes, and bytes of them that were used; barriers that one block
    passes."""

    warp_instructions: float
    lane_instructions: float
    global_instructions: float
    sectors: float
    used_bytes: float
    barriers: float

    @property
    def active_lanes(self) -> float:
        """Mean over the warp instructions."""
        return self.lane_instructions / self.warp_instructions


@dataclass(slots=True)
class PtxLauncher:
    """Launches algorithms one after the other (kernel_runner.Launch) and records what they do.

    block_size: of all kernels, None for that of each algorithm.
    """

    machine: Machine
    block_size: int | None = None
    records: list[tuple[Algorithm, LaunchRecord]] = field(default_factory=list)

    def __call__(self, algorithm: Algorithm, parameters: NDArray[np.uint8], header: NDArray[np.void]) -> None:
        blocks = {Grid.ONE: 1, Grid.ROWS: int(header["n_rows"][0]), Grid.EVENTS: int(header["n_events"][0])}
        nbytes = self.machine.programs[algorithm.name].parameters.nbytes
        record = self.machine.launch(
            algorithm.name,
            parameters.tobytes()[:nbytes],
            blocks[algorithm.grid],
            self.block_size or algorithm.block_size,
        )
        self.records.append((algorithm, record))

    @property
    def conflicts(self) -> Sequence[Conflict]:
        """Accesses that nothing orders, of all launches."""
        return [conflict for _, record in self.records for conflict in record.conflicts]

    def costs(self, n_events: int) -> dict[str, KernelCost]:
        """By kernel, in the order of the launches."""
        return {algorithm.name: _cost(algorithm, record, n_events) for algorithm, record in self.records}


def _cost(algorithm: Algorithm, record: LaunchRecord, n_events: int) -> KernelCost:
    totals = {name: int(record.counts[name].sum()) / n_events for name in ("executions", "lanes", "sectors", "bytes")}
    accesses = record.counts["executions"][record.counts["sectors"] > 0]
    barriers = record.block_barriers
    return KernelCost(
        warp_instructions=totals["executions"],
        lane_instructions=totals["lanes"],
        global_instructions=int(accesses.sum()) / n_events,
        sectors=totals["sectors"],
        used_bytes=totals["bytes"],
        # An event has one block; other blocks run at the same time, so that the slowest of them counts.
        barriers=float(barriers.mean() if algorithm.grid == Grid.EVENTS else barriers.max()),
    )
