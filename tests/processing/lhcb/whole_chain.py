"""A whole sequence of HLT1 on the CPU back end, as a reference for other ways to run its kernels."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from hltnode.processing.framework.backends.factory import create_backend
from hltnode.processing.framework.batch import MepInBatch
from hltnode.processing.framework.collections import Column, Role
from hltnode.processing.framework.declaration import AlgorithmSequence
from hltnode.processing.framework.limits import BatchLimits
from hltnode.processing.framework.memory_plan import MemoryPlan
from hltnode.processing.framework.offline_runner import EncodedMep
from hltnode.processing.lhcb.chain import CHAIN, HLT1_SEQUENCE, geometry_constants
from hltnode.processing.lhcb.geometry.velo import VeloGeometry
from hltnode.processing.lhcb.scifi.collections import N_ZONES
from hltnode.processing.lhcb.tracks.long.collections import BIN_STRIDE, N_BINS
from hltnode.processing.lhcb.velo.collections import unsorted
from tests.processing.framework.kernel_runner import Allocate, Launch, host_memory, run_algorithms

COUNTS = {
    **dict.fromkeys(("velo_beamline", "velo_end", "ut_candidates"), "velo_tracks.count"),
    **{"forward_candidates": "ut_tracks.count", "seeding_hits": "seeding_hits.bins"},
}
"""Columns that hold how many objects a collection has, where it has none of its own."""
UNORDERED = (unsorted,)
"""Collections whose objects may lie in any order."""
INPUTS = ("input.bytes", "input.mfp_rows", "input.mep_rows", "input.event_rows", "events.flags")


@dataclass(frozen=True, slots=True)
class Reference:
    """One batch: the sequence, inputs and constants, the limits, and what the CPU back end made of it."""

    sequence: AlgorithmSequence
    given: dict[str, NDArray[Any]]
    limits: BatchLimits
    n_events: int
    made: dict[str, bytes]

    def differences(
        self,
        launch: Launch,
        allocate: Allocate = host_memory,
        *,
        plan: MemoryPlan | None = None,
        sequence: AlgorithmSequence | None = None,
        sizes_apart: bool = False,
    ) -> list[str]:
        """Columns that come out otherwise if `launch` runs the kernels. With a plan columns share memory, as they do in
        production; it must retain what is compared. `sizes_apart`: large events are launched apart, as on a GPU."""
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
        found = {name: result[name].tobytes() for name in self.made}
        expected, got = self._used(self.made), self._used(found)
        return [name for name in expected if expected[name] != got[name]]

    def _used(self, made: dict[str, bytes]) -> dict[str, bytes]:
        """The parts of columns that hold objects: behind the last one of an event kernels may write what they like."""
        columns = {column.name: column for column in self.sequence.columns}
        return {name: used_part(columns[name], content, made, self.n_events) for name, content in made.items()}


def used_part(column: Column, content: bytes, made: dict[str, bytes], n_events: int) -> bytes:
    """What a column holds of the objects of its collection, if it is known how many there are."""
    collection = column.collection
    if column.of_event or collection is None or collection.placement is None:
        return content
    count = COUNTS.get(collection.name, f"{collection.name}.count")
    offsets = collection.placement.offsets
    if count not in made or (offsets is not None and offsets.name not in made):
        return content
    begin = None if offsets is None else np.frombuffer(made[offsets.name], np.uint32)
    if count == "seeding_hits.bins":
        # The last zone says where the hits of the event end.
        bins = np.frombuffer(made[count], np.uint16).reshape(-1, N_ZONES, BIN_STRIDE)
        counts = bins[:n_events, -1, N_BINS].astype(np.uint32)
    else:
        counts = np.frombuffer(made[count], np.uint32)[:n_events]
    values = np.frombuffer(content, column.dtype).reshape(-1, column.width)
    parts = zip(collection.placement.first(begin, n_events), counts, strict=True)
    return b"".join(values[first : first + n].tobytes() for first, n in parts)


def reference_of(mep: EncodedMep, geometry: VeloGeometry | Path | None, sequence: str = "velo") -> Reference:
    """Run one MEP on the CPU back end by a sequence, with default constants and lines.

    geometry: that of the VELO, which is enough for the sequence `velo`; a folder of files, or None, the built-in one.
    """
    chain = CHAIN.with_sequence(sequence)
    n = mep.n_events
    limits = BatchLimits(events=n, meps=1, input_bytes=-(-mep.data.nbytes // 8) * 8, rows=len(mep.fragments))
    trigger = CHAIN.load_trigger(None, sequence)
    constants = geometry_constants(geometry) if isinstance(geometry, VeloGeometry) else chain.load_geometry(geometry)
    engine = CHAIN.create_engine(create_backend("cpu", CHAIN.kernels), constants, trigger, limits, retain="all")
    workspace = engine.create_workspace()
    workspace.input_data[: mep.data.nbytes] = mep.data
    workspace.seal([MepInBatch(n, mep.fragments)])
    given = {name: workspace.host_array(name).copy() for name in INPUTS}
    given |= {c.name: constants[c.name].view(c.dtype) for c in engine.plan.constants if c.name in constants}
    workspace.submit()
    workspace.wait()
    names = compared() if sequence == "velo" else results(chain.sequence)
    made = {name: workspace.fetch(name).tobytes() for name in names}
    return Reference(chain.sequence, given, engine.limits, n, made)


def results(sequence: AlgorithmSequence) -> Sequence[str]:
    """All columns that algorithms make, but for the memory that one of them uses alone."""
    scratch = {column for algorithm in sequence for column in algorithm.scratch_columns}
    made = {column for algorithm in sequence for column in (*algorithm.writes, *algorithm.updates)}
    return [c.name for c in sequence.columns if c in made - scratch and c.collection not in UNORDERED]


def compared() -> Sequence[str]:
    """Of the VELO chain: everything that a physicist or the daemon may look at."""
    outputs = [column.name for column in HLT1_SEQUENCE.columns if column.role & Role.OUTPUT]
    hits_and_tracks = [
        "velo_hits.x",
        "velo_hits.id",
        "velo_hits.module_pair_offset",
        "velo_tracks.hits",
        "velo_tracks.hit_count",
    ]
    return [
        *outputs,
        *hits_and_tracks,
        "pvs.vertex",
        "events.odin",
        "velo_beamline.x",
        "velo_beamline.c00",
        "velo_end.tx",
        "velo_tracks.ip_chi2",
    ]
