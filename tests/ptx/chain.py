"""Runs the algorithms of a chain by their PTX and says what each kernel costs."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field

import numpy as np
from numpy.typing import NDArray

from hltnode.processing.framework.declaration import Algorithm, EventSizes, Grid
from tests.ptx.machine import Conflict, LaunchRecord, Machine


@dataclass(frozen=True, slots=True)
class KernelCost:
    """What a kernel costs for each event: instructions by warps, and the lanes that were active in all of them;
    sectors of 32 bytes of global memory, and bytes of them that were used; barriers that one block passes, and its path
    (machine.LaunchRecord)."""

    warp_instructions: float
    lane_instructions: float
    sectors: float
    used_bytes: float
    barriers: float
    path: float

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

    def __call__(
        self, algorithm: Algorithm, sizes: EventSizes, parameters: NDArray[np.uint8], header: NDArray[np.void]
    ) -> None:
        blocks = {Grid.ONE: 1, Grid.ROWS: int(header["n_rows"][0]), Grid.EVENTS: int(header["n_events"][0])}
        nbytes = self.machine.programs[algorithm.name].parameters.nbytes
        record = self.machine.launch(
            algorithm.name,
            parameters.tobytes()[:nbytes],
            blocks[algorithm.grid],
            self.block_size or sizes.block_size,
        )
        self.records.append((algorithm, record))

    @property
    def conflicts(self) -> Sequence[Conflict]:
        """Accesses that nothing orders, of all launches."""
        return [conflict for _, record in self.records for conflict in record.conflicts]

    def costs(self, n_events: int) -> dict[str, KernelCost]:
        """By kernel, in the order of the launches; those of one kernel together."""
        launches: dict[Algorithm, list[LaunchRecord]] = {}
        for algorithm, record in self.records:
            launches.setdefault(algorithm, []).append(record)
        return {algorithm.name: _cost(algorithm, records, n_events) for algorithm, records in launches.items()}


def _cost(algorithm: Algorithm, records: Sequence[LaunchRecord], n_events: int) -> KernelCost:
    def total(name: str) -> float:
        return sum(int(record.counts[name].sum()) for record in records) / n_events

    def of_block(values: Iterable[NDArray[np.uint64]]) -> float:
        # An event has one block of each launch; other blocks run at the same time, so that the slowest of them counts.
        blocks = np.sum(list(values), axis=0)
        return float(blocks.mean() if algorithm.grid == Grid.EVENTS else blocks.max())

    return KernelCost(
        warp_instructions=total("executions"),
        lane_instructions=total("lanes"),
        sectors=total("sectors"),
        used_bytes=total("bytes"),
        barriers=of_block(record.block_barriers for record in records),
        path=of_block(record.block_paths for record in records),
    )
