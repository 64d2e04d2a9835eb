"""HLT1 through the CUDA back end on a simulated GPU: slots that overlap, poisoned memory, and the bits of the CPU."""

from __future__ import annotations

from pathlib import Path

import pytest

from hltnode.processing.framework.backends.cpu import CpuBackend
from hltnode.processing.framework.backends.cuda import CudaBackend
from hltnode.processing.framework.backends.interface import Backend
from hltnode.processing.framework.batch import MepInBatch
from hltnode.processing.framework.engine import Engine, Workspace
from hltnode.processing.framework.limits import BatchLimits
from hltnode.processing.framework.offline_runner import EncodedMep, encode_mep
from hltnode.processing.lhcb.geometry.velo import VeloGeometry
from hltnode.processing.lhcb.hlt1 import HLT1, geometry_constants
from hltnode.processing.lhcb.simulation.banks.velo_encoding import VeloEncoding
from hltnode.processing.lhcb.simulation.velo_generator import simulate_events
from hltnode.protocol.lhcb.readout import VeloBanks
from tests.processing.framework.cupy_stand_in import install
from tests.processing.framework.simulated_gpu import Order, SimulatedGpu

EVENTS = 3
SEEDS = (4, 5, 6)
MOST_EVENTS = 5
"""Of a batch; blocks of events that are not there run too."""

GEOMETRY = VeloGeometry.builtin()


def meps_of(velo_banks: VeloBanks) -> list[EncodedMep]:
    """A MEP for each seed."""
    encoding: VeloEncoding = "retina" if velo_banks == "retina" else "superpixel"
    return [
        encode_mep(
            HLT1, list(simulate_events(EVENTS, seed, geometry=GEOMETRY, velo_banks=encoding)), encoding=velo_banks
        )
        for seed in SEEDS
    ]


def engine_of(backend: Backend, meps: list[EncodedMep]) -> Engine:
    limits = BatchLimits(
        events=MOST_EVENTS,
        meps=2,
        input_bytes=-(-max(mep.data.nbytes for mep in meps) // 8) * 8,
        rows=max(len(mep.fragments) for mep in meps) + 3,
    )
    return HLT1.create_engine(backend, geometry_constants(GEOMETRY), HLT1.load_trigger(None), limits)


def submit(workspace: Workspace, mep: EncodedMep) -> None:
    workspace.input_data[: mep.data.nbytes] = mep.data
    workspace.seal([MepInBatch(EVENTS, mep.fragments)])
    workspace.submit()


def results(workspace: Workspace) -> dict[str, bytes]:
    """What the daemon and the writers take, bit by bit."""
    output = workspace.output
    made = {"accepted": output.accepted.tobytes(), "lines": output.lines.tobytes(), "flags": output.flags.tobytes()}
    return made | {name: column.tobytes() for name, column in output.counts.items()}


@pytest.mark.timeout(180)
@pytest.mark.parametrize(("velo_banks", "order"), [("retina", Order.OTHERS), ("superpixel", Order.RANDOM)])
def test_slots_that_overlap_give_what_the_cpu_gives(
    velo_banks: VeloBanks, order: Order, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("CACHE_DIRECTORY", str(tmp_path))
    meps = meps_of(velo_banks)
    cpu = engine_of(CpuBackend(HLT1.kernels), meps).create_workspace()
    expected = []
    for mep in meps:
        submit(cpu, mep)
        cpu.wait()
        expected.append(results(cpu))

    install(monkeypatch, SimulatedGpu(HLT1.kernels, order=order))
    engine = engine_of(CudaBackend(HLT1.kernels), meps)
    workspaces = [engine.create_workspace() for _ in range(2)]
    found = []
    submit(workspaces[0], meps[0])
    for batch in range(len(meps)):
        if batch + 1 < len(meps):
            submit(workspaces[(batch + 1) % 2], meps[batch + 1])
        while not workspaces[batch % 2].poll():
            pass
        found.append(results(workspaces[batch % 2]))
    assert found == expected
    assert any(int.from_bytes(result["velo_tracks"], "little") for result in expected)
