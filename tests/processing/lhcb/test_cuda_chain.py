"""HLT1 through the CUDA back end on a simulated GPU: slots that overlap, poisoned memory, and the bits of the CPU.

Columns share memory as in production, except columns of tracks and vertices that are compared one by one.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path

import numpy as np
import pytest

from hltnode.processing.framework.backends.cpu import CpuBackend
from hltnode.processing.framework.backends.cuda import CudaBackend
from hltnode.processing.framework.backends.interface import Backend
from hltnode.processing.framework.batch import MepInBatch
from hltnode.processing.framework.collections import Column
from hltnode.processing.framework.engine import Engine
from hltnode.processing.framework.limits import BatchLimits
from hltnode.processing.framework.offline_runner import EncodedMep, encode_mep
from hltnode.processing.framework.workspace import Workspace
from hltnode.processing.lhcb.chain import CHAIN, geometry_constants
from hltnode.processing.lhcb.geometry.velo import VeloGeometry
from hltnode.processing.lhcb.offline.simulation.banks.velo_encoding import VeloEncoding
from hltnode.processing.lhcb.offline.simulation.velo_generator import simulate_events
from hltnode.protocol.raw_data.raw_bank import RawBank
from tests.processing.framework.cupy_stand_in import install
from tests.processing.framework.simulated_gpu import Order, SimulatedGpu
from tests.processing.lhcb.full_events import full_events
from tests.processing.lhcb.velo.velo_chain import real_events
from tests.processing.lhcb.whole_chain import results as results_of_sequence
from tests.processing.lhcb.whole_chain import used_part

SEEDS = (4, 5, 6)
IN_EVERY_TEST = {("forward_then_matching", "retina"), ("no_ut", "retina")}
"""Batches of the real events; all of them together are slow."""
ENCODINGS: tuple[VeloEncoding, ...] = ("retina", "superpixel")
COMPARED = {"long_tracks", "secondary_vertices", "pvs"}
"""Collections whose columns are compared in addition to the outputs for the daemon."""


@dataclass(frozen=True)
class Batches:
    """One MEP per batch, and the input of both back ends. The limit on events exceeds the largest batch, so blocks of
    missing events run too."""

    sequence: str
    meps: Sequence[EncodedMep]
    geometry: VeloGeometry | Path | None

    @property
    def columns(self) -> list[Column]:
        """The retained columns."""
        sequence = CHAIN.sequences[self.sequence].algorithms
        names = set(results_of_sequence(sequence))
        return [
            c
            for c in sequence.columns
            if c.name in names and c.collection is not None and c.collection.name in COMPARED
        ]

    def engine(self, backend: Backend) -> Engine:
        limits = BatchLimits(
            events=max(mep.n_events for mep in self.meps) + 2,
            meps=2,
            input_bytes=-(-max(mep.data.nbytes for mep in self.meps) // 8) * 8,
            rows=max(len(mep.fragments) for mep in self.meps) + 3,
        )
        constants = (
            geometry_constants(self.geometry)
            if isinstance(self.geometry, VeloGeometry)
            else CHAIN.with_sequence(self.sequence).load_geometry(self.geometry)
        )
        trigger = CHAIN.load_trigger(None, self.sequence)
        retain = [column.name for column in self.columns]
        return CHAIN.create_engine(backend, constants, trigger, limits, retain=retain)


def submit(workspace: Workspace, mep: EncodedMep) -> None:
    workspace.input_data[: mep.data.nbytes] = mep.data
    workspace.seal([MepInBatch(mep.n_events, mep.fragments)])
    workspace.submit()


def delivered(workspace: Workspace) -> dict[str, bytes]:
    """Outputs for the daemon and the writers, as bytes."""
    output = workspace.output
    made = {"accepted": output.accepted.tobytes(), "lines": output.lines.tobytes(), "flags": output.flags.tobytes()}
    return made | {name: column.tobytes() for name, column in output.counts.items()}


def retained(workspace: Workspace, columns: Sequence[Column]) -> dict[str, bytes]:
    """Columns of tracks and vertices of the last batch."""
    made = {column.name: workspace.fetch(column.name).tobytes() for column in columns}
    n = workspace.n_events
    return {column.name: used_part(column, made[column.name], made, n) for column in columns if not column.of_event}


def on_the_cpu(batches: Batches) -> Iterator[tuple[dict[str, bytes], dict[str, bytes]]]:
    """One batch after the other."""
    workspace = batches.engine(CpuBackend(CHAIN.kernels)).create_workspace()
    for mep in batches.meps:
        submit(workspace, mep)
        workspace.wait()
        yield delivered(workspace), retained(workspace, batches.columns)


def compare(batches: Batches, gpu: SimulatedGpu, monkeypatch: pytest.MonkeyPatch) -> list[dict[str, bytes]]:
    """Two slots on a GPU take the batches in turn; each batch starts before the previous one is done.

    Fails if the bits differ from those of the CPU; returns the outputs for the daemon."""
    expected = list(on_the_cpu(batches))
    install(monkeypatch, gpu)
    engine = batches.engine(CudaBackend(CHAIN.kernels))
    workspaces = [engine.create_workspace() for _ in range(2)]
    submit(workspaces[0], batches.meps[0])
    for batch, (to_deliver, _) in enumerate(expected):
        if batch + 1 < len(expected):
            submit(workspaces[(batch + 1) % 2], batches.meps[batch + 1])
        while not workspaces[batch % 2].poll():
            pass
        found = delivered(workspaces[batch % 2])
        assert [name for name, content in to_deliver.items() if content != found[name]] == [], batch
    # Reading a column waits for all slots, so only columns of the last batches are read.
    for batch in range(max(0, len(expected) - 2), len(expected)):
        columns = retained(workspaces[batch % 2], batches.columns)
        assert [name for name, content in expected[batch][1].items() if content != columns[name]] == [], batch
    return [to_deliver for to_deliver, _ in expected]


def total(made: Sequence[dict[str, bytes]], collection: str) -> int:
    """Number of objects in all batches."""
    return sum(int(np.frombuffer(of_batch[collection], dtype=np.uint32).sum()) for of_batch in made)


def encoded(sequence: str, events: Sequence[Sequence[RawBank]], velo_banks: VeloEncoding) -> EncodedMep:
    return encode_mep(CHAIN.with_sequence(sequence), list(events), encoding=velo_banks)


@pytest.fixture
def kernel_cache(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("CACHE_DIRECTORY", str(tmp_path))


@pytest.mark.timeout(300)
@pytest.mark.usefixtures("kernel_cache")
@pytest.mark.parametrize(("velo_banks", "order"), [("retina", Order.OTHERS), ("superpixel", Order.RANDOM)])
def test_slots_that_overlap_give_what_the_cpu_gives(
    velo_banks: VeloEncoding, order: Order, monkeypatch: pytest.MonkeyPatch
) -> None:
    geometry = VeloGeometry.builtin()
    meps = [
        encoded("velo", list(simulate_events(3, seed, geometry=geometry, velo_banks=velo_banks)), velo_banks)
        for seed in SEEDS
    ]
    made = compare(Batches("velo", meps, geometry), SimulatedGpu(CHAIN.kernels, order=order), monkeypatch)
    assert total(made, "velo_tracks") > 0


@pytest.mark.timeout(300)
@pytest.mark.usefixtures("kernel_cache")
@pytest.mark.parametrize(
    ("sequence", "velo_banks", "order"),
    [("forward_then_matching", "retina", Order.OTHERS), ("no_ut", "superpixel", Order.RANDOM)],
)
def test_slots_that_overlap_give_what_the_cpu_gives_of_the_whole_reconstruction(
    sequence: str, velo_banks: VeloEncoding, order: Order, monkeypatch: pytest.MonkeyPatch
) -> None:
    meps = [encoded(sequence, full_events(1 + i, seed, velo_banks, nu=2.0), velo_banks) for i, seed in enumerate(SEEDS)]
    made = compare(Batches(sequence, meps, None), SimulatedGpu(CHAIN.kernels, order=order), monkeypatch)
    for collection in CHAIN.sequences[sequence].counts:
        assert total(made, collection) > 0, collection


@pytest.mark.timeout(600)
@pytest.mark.usefixtures("kernel_cache")
@pytest.mark.parametrize(
    ("sequence", "velo_banks"),
    [
        pytest.param(sequence, encoding, marks=() if (sequence, encoding) in IN_EVERY_TEST else pytest.mark.slow)
        for sequence in tuple(CHAIN.sequences)[1:]
        for encoding in ENCODINGS
    ],
)
def test_slots_that_overlap_give_what_the_cpu_gives_of_the_real_events(
    shared: Path, sequence: str, velo_banks: VeloEncoding, monkeypatch: pytest.MonkeyPatch
) -> None:
    events = real_events(shared, velo_banks)
    meps = [encoded(sequence, events[first : first + 3], velo_banks) for first in range(0, len(events), 3)]
    gpu = SimulatedGpu(CHAIN.kernels, order=Order.RANDOM, memory=4 << 30)
    gpu.backward = True
    made = compare(Batches(sequence, meps, shared / "data" / "lhcb-geometry"), gpu, monkeypatch)
    for collection in CHAIN.sequences[sequence].counts:
        assert total(made, collection) > 10, collection
