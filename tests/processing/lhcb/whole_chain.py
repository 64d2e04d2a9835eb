"""The whole sequence of HLT1 on the CPU back end, as a reference for other ways to run its kernels."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from hltnode.processing.framework.backends.factory import create_backend
from hltnode.processing.framework.batch import MepInBatch
from hltnode.processing.framework.collections import Role
from hltnode.processing.framework.declaration import AlgorithmSequence
from hltnode.processing.framework.limits import BatchLimits
from hltnode.processing.framework.memory_plan import MemoryPlan
from hltnode.processing.framework.offline_runner import EncodedMep
from hltnode.processing.lhcb.geometry.velo import VeloGeometry
from hltnode.processing.lhcb.hlt1 import HLT1, HLT1_SEQUENCE, geometry_constants
from hltnode.processing.selection.trigger_config import TriggerConfig
from tests.processing.framework.kernel_runner import Allocate, Launch, host_memory, run_algorithms

INPUTS = ("input.bytes", "input.mfp_rows", "input.mep_rows", "input.event_rows", "events.flags")


@dataclass(frozen=True, slots=True)
class Reference:
    """One batch: the content of inputs and constants, its limits, and what the CPU back end made of it."""

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
        sequence: AlgorithmSequence = HLT1_SEQUENCE,
        sizes_apart: bool = False,
    ) -> list[str]:
        """Columns that come out otherwise if `launch` runs the kernels. With a plan columns share memory, as they do in
        production; it must retain what is compared. `sizes_apart`: large events are launched apart, as on a GPU."""
        result = run_algorithms(
            tuple(sequence),
            self.given,
            self.n_events,
            self.limits,
            launch,
            allocate=allocate,
            plan=plan,
            sizes_apart=sizes_apart,
        )
        return [name for name in compared() if result[name].tobytes() != self.made[name]]


def reference_of(mep: EncodedMep, geometry: VeloGeometry) -> Reference:
    """Run one MEP on the CPU back end with the default configuration."""
    n = mep.n_events
    limits = BatchLimits(events=n, meps=1, input_bytes=-(-mep.data.nbytes // 8) * 8, rows=len(mep.fragments))
    trigger = TriggerConfig.default(HLT1.menu)
    engine = HLT1.create_engine(
        create_backend("cpu", HLT1.kernels), geometry_constants(geometry), trigger, limits, retain="all"
    )
    workspace = engine.create_workspace()
    workspace.input_data[: mep.data.nbytes] = mep.data
    workspace.seal([MepInBatch(n, mep.fragments)])
    given = {name: workspace.host_array(name).copy() for name in INPUTS}
    given["velo_geometry"] = np.frombuffer(geometry.to_bytes(), dtype=np.float32)
    given["line_table"] = trigger.line_table()
    workspace.submit()
    workspace.wait()
    made = {name: workspace.fetch(name).tobytes() for name in compared()}
    return Reference(given, engine.limits, n, made)


def compared() -> Sequence[str]:
    """Everything that a physicist or the daemon may look at."""
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
