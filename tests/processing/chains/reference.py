"""One batch of a chain on the CPU back end, as a reference for other ways to run its kernels."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from hltnode.processing.framework.backends.factory import create_backend
from hltnode.processing.framework.batch import MepInBatch
from hltnode.processing.framework.collections import Column
from hltnode.processing.framework.declaration import AlgorithmSequence
from hltnode.processing.framework.limits import BatchLimits
from hltnode.processing.framework.memory_plan import MemoryPlan
from hltnode.processing.framework.offline_runner import EncodedMep
from hltnode.processing.selection.trigger_chain import Constants, TriggerChain
from tests.processing.framework.kernel_runner import Allocate, Launch, host_memory, run_algorithms

INPUTS = ("input.bytes", "input.mfp_rows", "input.mep_rows", "input.event_rows", "events.flags")

Counts = Callable[[str, Mapping[str, bytes], int], "NDArray[np.uint32] | None"]
"""Number of objects of a collection in each event, from the columns by name; None: unknown."""


def counts_of_columns(collection: str, made: Mapping[str, bytes], n_events: int) -> NDArray[np.uint32] | None:
    """The counts in the column `<collection>.count`."""
    content = made.get(f"{collection}.count")
    return None if content is None else np.frombuffer(content, np.uint32)[:n_events]


@dataclass(frozen=True, slots=True)
class Reference:
    """One batch: the sequence, inputs and constants, the limits, and the columns that the CPU back end computed."""

    sequence: AlgorithmSequence
    given: dict[str, NDArray[Any]]
    limits: BatchLimits
    n_events: int
    made: dict[str, bytes]
    counts: Counts = counts_of_columns

    def differences(
        self,
        launch: Launch,
        allocate: Allocate = host_memory,
        *,
        plan: MemoryPlan | None = None,
        sequence: AlgorithmSequence | None = None,
        sizes_apart: bool = False,
    ) -> list[str]:
        """Columns that differ if `launch` runs the kernels. With a plan, columns share memory as in production, and the
        plan must retain the compared columns. `sizes_apart`: large events have their own launch, as on a GPU."""
        result = run_algorithms(
            tuple(sequence or self.sequence),
            self.given,
            self.n_events,
            self.limits,
            launch,
            allocate=allocate,
            plan=plan,
            sizes_apart=sizes_apart,
        )
        return self.differing({name: result[name].tobytes() for name in self.made})

    def differing(self, found: dict[str, bytes]) -> list[str]:
        """Names of the columns whose content differs in `found`, which has all of `made`."""
        expected, got = self._used(self.made), self._used(found)
        return [name for name in expected if expected[name] != got[name]]

    def found(self, column: str) -> int:
        """Sum of a column of counts per event."""
        return int(np.frombuffer(self.made[column], dtype=np.uint32)[: self.n_events].sum())

    def _used(self, made: dict[str, bytes]) -> dict[str, bytes]:
        """The parts of columns that hold objects; behind the last object of an event kernels may write anything."""
        columns = {column.name: column for column in self.sequence.columns}
        return {
            name: used_part(columns[name], content, made, self.n_events, self.counts) for name, content in made.items()
        }


def used_part(column: Column, content: bytes, made: Mapping[str, bytes], n_events: int, counts: Counts) -> bytes:
    """The part of a column that holds objects of its collection, if their number is known."""
    collection = column.collection
    if not column.is_placed or collection is None or collection.placement is None or collection.parts is not None:
        return content
    offsets = collection.placement.offsets
    of_event = counts(collection.name, made, n_events)
    if of_event is None or (offsets is not None and offsets.name not in made):
        return content
    begin = None if offsets is None else np.frombuffer(made[offsets.name], np.uint32)
    values = np.frombuffer(content, column.dtype).reshape(-1, column.width)
    parts = zip(collection.placement.first(begin, n_events), of_event, strict=True)
    return b"".join(values[first : first + n].tobytes() for first, n in parts)


def run_reference(
    chain: TriggerChain,
    mep: EncodedMep,
    constants: Constants,
    sequence: str | None,
    compared: Sequence[str],
    counts: Counts = counts_of_columns,
) -> Reference:
    """Run one MEP on the CPU back end by a sequence of the chain, with default constants and lines.

    compared: the columns that must be equal in other ways to run the kernels.
    """
    n = mep.n_events
    limits = BatchLimits(events=n, meps=1, input_bytes=-(-mep.data.nbytes // 8) * 8, rows=len(mep.fragments))
    trigger = chain.load_trigger(None, sequence)
    engine = chain.create_engine(create_backend("cpu", chain.kernels), constants, trigger, limits, retain="all")
    workspace = engine.create_workspace()
    workspace.input_data[: mep.data.nbytes] = mep.data
    workspace.seal([MepInBatch(n, mep.fragments)])
    given = {name: workspace.host_array(name).copy() for name in INPUTS}
    given |= {c.name: constants[c.name].view(c.dtype) for c in engine.plan.constants if c.name in constants}
    workspace.submit()
    workspace.wait()
    made = {name: workspace.fetch(name).tobytes() for name in compared}
    return Reference(chain.with_sequence(sequence).sequence, given, engine.limits, n, made, counts)
