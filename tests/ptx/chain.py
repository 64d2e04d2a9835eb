"""Runs the algorithms of a chain by their PTX and returns the cost of each kernel."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field

import numpy as np
from numpy.typing import NDArray

from hltnode.processing.framework.codegen import parameter_columns
from hltnode.processing.framework.collections import Role
from hltnode.processing.framework.declaration import Algorithm, EventSizes, Grid
from tests.processing.framework.kernel_runner import n_blocks
from tests.ptx.machine import NO_BLOCK, Conflict, LaunchRecord, Machine

_BY_EVENT = (Grid.EVENTS, Grid.PARTS, Grid.FRAGMENTS)
"""Grids whose number of blocks rises with the events."""


@dataclass(frozen=True, slots=True)
class KernelCost:
    """The cost of a kernel per event.

    Instructions by warps, and the sum of their active lanes; instructions that access global memory, accessed sectors
    of 32 bytes, and used bytes of them; bytes of local memory; barriers that one block passes, and its path
    (machine.LaunchRecord).

    Minimum traffic of the device memory for any cache size: bytes of columns that a kernel reads, each once, and that
    it writes (machine.Machine.touched). `constant_bytes` are per batch, not per event.
    """

    warp_instructions: float
    lane_instructions: float
    global_instructions: float
    sectors: float
    used_bytes: float
    local_bytes: float
    read_bytes: float
    written_bytes: float
    constant_bytes: float
    barriers: float
    path: float

    @property
    def active_lanes(self) -> float:
        """Mean over the warp instructions."""
        return self.lane_instructions / self.warp_instructions


@dataclass(frozen=True, slots=True)
class Launched:
    """One launch: bytes that it has read and written for all events, and of constants; 0 if columns share memory."""

    algorithm: Algorithm
    record: LaunchRecord
    read_bytes: int
    written_bytes: int
    constant_bytes: int


@dataclass(slots=True)
class PtxLauncher:
    """Launches algorithms one after the other (kernel_runner.Launch) and records what they do.

    block_size: for all kernels; None: the block size of each algorithm. traced_block: the block whose trace each record
    has.
    """

    machine: Machine
    block_size: int | None = None
    traced_block: int = NO_BLOCK
    launched: list[Launched] = field(default_factory=list)

    def __call__(
        self, algorithm: Algorithm, sizes: EventSizes, parameters: NDArray[np.uint8], header: NDArray[np.void]
    ) -> None:
        nbytes = self.machine.programs[algorithm.kernel].parameters.nbytes
        record = self.machine.launch(
            algorithm.kernel,
            parameters.tobytes()[:nbytes],
            n_blocks(algorithm, header),
            self.block_size or sizes.block_size,
            traced_block=self.traced_block,
        )
        columns = parameter_columns(algorithm)
        pointers = parameters[: 8 * len(columns)].view(np.uint64).tolist()
        touched = [
            (*self.machine.touched(pointer), Role.CONSTANT in column.role)
            for column, pointer in zip(columns, pointers, strict=True)
        ]
        self.launched.append(
            Launched(
                algorithm,
                record,
                read_bytes=sum(read for read, _, is_constant in touched if not is_constant),
                written_bytes=sum(written for _, written, _ in touched),
                constant_bytes=sum(read for read, _, is_constant in touched if is_constant),
            )
        )

    @property
    def conflicts(self) -> Sequence[Conflict]:
        """Unordered accesses in all launches."""
        return [conflict for launched in self.launched for conflict in launched.record.conflicts]

    def costs(self, n_events: int) -> dict[str, KernelCost]:
        """Cost by kernel, in the order of the first launches."""
        launches: dict[Algorithm, list[Launched]] = {}
        for launched in self.launched:
            launches.setdefault(launched.algorithm, []).append(launched)
        return {algorithm.name: _cost(algorithm, of, n_events) for algorithm, of in launches.items()}


def _cost(algorithm: Algorithm, launches: Sequence[Launched], n_events: int) -> KernelCost:
    records = [launched.record for launched in launches]

    def total(name: str) -> float:
        return sum(int(record.counts[name].sum()) for record in records) / n_events

    def of_block(values: Iterable[NDArray[np.uint64]]) -> float:
        # An event has one block in each launch; blocks run at the same time, so the slowest one counts.
        blocks = np.sum(list(values), axis=0)
        return float(blocks.mean() if algorithm.grid in _BY_EVENT else blocks.max())

    accesses = sum(int(record.counts["executions"][record.counts["sectors"] > 0].sum()) for record in records)
    return KernelCost(
        warp_instructions=total("executions"),
        lane_instructions=total("lanes"),
        global_instructions=accesses / n_events,
        sectors=total("sectors"),
        used_bytes=total("bytes"),
        local_bytes=total("local_bytes"),
        read_bytes=sum(launched.read_bytes for launched in launches) / n_events,
        written_bytes=sum(launched.written_bytes for launched in launches) / n_events,
        constant_bytes=max(launched.constant_bytes for launched in launches),
        barriers=of_block(record.block_barriers for record in records),
        path=of_block(record.block_paths for record in records),
    )
