"""The whole sequence with blocks of many emulated threads: the same bits for every block size and order of threads."""

from __future__ import annotations

from functools import cache
from typing import Any

import numpy as np
import pytest
from numpy.typing import NDArray

from hltnode.processing.framework.backends.factory import create_backend
from hltnode.processing.framework.batch import MepInBatch
from hltnode.processing.framework.collections import Role
from hltnode.processing.framework.limits import BatchLimits
from hltnode.processing.framework.offline_runner import encode_mep
from hltnode.processing.lhcb.geometry.velo import VeloGeometry
from hltnode.processing.lhcb.hlt1 import HLT1, HLT1_SEQUENCE, geometry_constants
from hltnode.processing.lhcb.simulation.banks.velo_encoding import VeloEncoding
from hltnode.processing.lhcb.simulation.velo_generator import simulate_events
from hltnode.processing.selection.trigger_config import TriggerConfig
from hltnode.protocol.lhcb.readout import VeloBanks
from tests.processing.framework.kernel_runner import run_algorithms, with_block_size

N_EVENTS = 5
INPUTS = ("input.bytes", "input.mfp_rows", "input.mep_rows", "input.event_rows", "events.flags")


@cache
def batch(velo_banks: VeloBanks) -> tuple[dict[str, NDArray[Any]], BatchLimits, dict[str, bytes]]:
    """(content of the inputs and constants, limits, what the CPU back end made of it)."""
    geometry = VeloGeometry.builtin()
    encoding: VeloEncoding = "retina" if velo_banks == "retina" else "superpixel"
    events = list(simulate_events(N_EVENTS, seed=4, geometry=geometry, velo_banks=encoding))
    mep = encode_mep(HLT1, events, encoding=velo_banks)
    limits = BatchLimits(events=N_EVENTS, meps=1, input_bytes=-(-mep.data.nbytes // 8) * 8, rows=len(mep.fragments))
    trigger = TriggerConfig.default(HLT1.menu)
    engine = HLT1.create_engine(
        create_backend("cpu", HLT1.kernels), geometry_constants(geometry), trigger, limits, retain="all"
    )
    workspace = engine.create_workspace()
    workspace.input_data[: mep.data.nbytes] = mep.data
    workspace.seal([MepInBatch(N_EVENTS, mep.fragments)])
    given = {name: workspace.host_array(name).copy() for name in INPUTS}
    given["velo_geometry"] = np.frombuffer(geometry.to_bytes(), dtype=np.float32)
    given["line_table"] = trigger.line_table()
    workspace.submit()
    workspace.wait()
    made = {name: workspace.fetch(name).tobytes() for name in compared()}
    return given, engine.limits, made


def compared() -> list[str]:
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


@pytest.mark.parametrize("velo_banks", ["retina", "superpixel"])
@pytest.mark.parametrize("backward", [False, True])
@pytest.mark.parametrize("block_size", [1, 32, 100, 256])
def test_results_do_not_depend_on_the_threads(velo_banks: VeloBanks, block_size: int, backward: bool) -> None:
    given, limits, expected = batch(velo_banks)
    assert np.frombuffer(expected["pvs.count"], dtype=np.uint32).sum() > N_EVENTS
    launch = with_block_size(block_size, backward=backward)
    result = run_algorithms(tuple(HLT1_SEQUENCE), given, N_EVENTS, limits, launch)
    assert [name for name in compared() if result[name].tobytes() != expected[name]] == []
