"""Shared memory changes no result: on a device columns share an arena, on the CPU each thread has scratch."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from functools import cache
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from numpy.typing import NDArray

from hltnode.processing.framework.backends.cpu import CpuBackend, CpuQueue
from hltnode.processing.framework.backends.interface import DeviceMemory
from hltnode.processing.framework.batch import MepInBatch
from hltnode.processing.framework.collections import Role
from hltnode.processing.framework.engine import Engine
from hltnode.processing.framework.flags import EventFlag
from hltnode.processing.framework.limits import BatchLimits
from hltnode.processing.framework.memory_plan import Retain, plan_memory
from hltnode.processing.framework.offline_runner import EncodedMep, encode_mep
from hltnode.processing.framework.workspace import Workspace
from hltnode.processing.lhcb.chain import CHAIN, HLT1_SEQUENCE, geometry_constants
from hltnode.processing.lhcb.geometry.velo import VeloGeometry
from hltnode.processing.lhcb.offline.simulation.banks.velo_encoding import VeloEncoding
from hltnode.processing.lhcb.offline.simulation.velo_generator import simulate_events
from hltnode.processing.lhcb.offline.validation.checker.reconstruction import retained
from hltnode.processing.lhcb.velo.collections import MAX_CLUSTERS_PER_EVENT
from hltnode.protocol.lhcb.bank_types import LhcbBankType
from hltnode.protocol.raw_data.bank_types import BankType
from hltnode.protocol.raw_data.raw_bank import RawBank
from tests.processing.framework.kernel_runner import run_algorithms
from tests.processing.lhcb.velo.velo_chain import UNCUT, real_events

BUILT_IN = VeloGeometry.builtin()
GIB = 1 << 30
NODE_LIMITS = BatchLimits(events=4096, meps=256, input_bytes=128 << 20)
"""Defaults of a node."""
POISONS = (0x00, 0xA5, 0xFF)
"""0xFF makes NaN of floats and -1 of integers."""

Events = Sequence[Sequence[RawBank]]

RETAINED = retained(HLT1_SEQUENCE)


class PoisonedBackend(CpuBackend):
    """A CPU back end that fills its memory with a byte value and remembers the blocks of its threads."""

    def __init__(self, poison: int = 0, threads: int = 1) -> None:
        super().__init__(CHAIN.kernels, threads=threads)
        self.poison = poison
        self.blocks: list[NDArray[np.uint8]] = []

    def allocate_device(self, nbytes: int) -> DeviceMemory:
        memory = super().allocate_device(nbytes)
        memory.owner[:] = self.poison
        self.blocks.append(memory.owner)
        return memory

    def poison_blocks(self, nbytes: int) -> None:
        """Overwrite all blocks of this size."""
        for block in self.blocks:
            if block.nbytes == nbytes:
                block[:] = self.poison


def an_engine(
    backend: CpuBackend, limits: BatchLimits, geometry: VeloGeometry = BUILT_IN, retain: Retain = ()
) -> Engine:
    return CHAIN.create_engine(backend, geometry_constants(geometry), UNCUT, limits, retain=retain)


def limits_of(mep: EncodedMep) -> BatchLimits:
    """A batch with this MEP, with room for the free places behind each event."""
    nbytes = -(-mep.data.nbytes // 8) * 8 + 64 * mep.n_events
    return BatchLimits(events=mep.n_events, meps=1, input_bytes=nbytes, rows=len(mep.fragments))


def fill(workspace: Workspace, mep: EncodedMep) -> None:
    workspace.input_data[: mep.data.nbytes] = mep.data
    workspace.seal([MepInBatch(mep.n_events, mep.fragments)])


def results(workspace: Workspace) -> dict[str, bytes]:
    """All outputs, bit by bit."""
    names = [column.name for column in HLT1_SEQUENCE.columns if column.role & Role.OUTPUT]
    return {name: workspace.host_array(name)[: workspace.n_events].tobytes() for name in names}


def run(workspace: Workspace, mep: EncodedMep) -> dict[str, bytes]:
    fill(workspace, mep)
    workspace.submit()
    workspace.wait()
    return results(workspace)


def unshared(mep: EncodedMep, geometry: VeloGeometry = BUILT_IN) -> dict[str, bytes]:
    """Output of the sequence if every column has its own, zeroed memory."""
    backend = PoisonedBackend()
    found = run(an_engine(backend, limits_of(mep), geometry, retain="all").create_workspace(), mep)
    backend.close()
    return found


@cache
def simulated(encoding: VeloEncoding, n: int = 12) -> EncodedMep:
    """Events of very different sizes, one of them without the VELO."""
    few = list(simulate_events(n // 2, seed=8, geometry=BUILT_IN, nu=1.0, velo_banks=encoding))
    many = list(simulate_events(n - n // 2, seed=9, geometry=BUILT_IN, nu=12.0, velo_banks=encoding))
    mixed = [banks for pair in zip(many, few, strict=True) for banks in pair]
    mixed[3] = [bank for bank in mixed[3] if bank.type == BankType.ODIN]
    return encode_mep(CHAIN, mixed)


def retina_words(rng: np.random.Generator, n: int) -> NDArray[np.uint32]:
    """Words of retina clusters at random places of both sensors of a pair (version 4)."""
    fraction_bits = 2
    column = rng.integers(0, 768, n) << (2 * fraction_bits + 8)
    return (rng.integers(0, 2, n) << 22 | column | rng.integers(1, 1 << (8 + 2 * fraction_bits), n)).astype("<u4")


def super_pixel_words(rng: np.random.Generator, n: int) -> NDArray[np.uint32]:
    """Words of super-pixels of one pixel at random places of both sensors of a pair (version 4)."""
    pattern = 1 << rng.integers(0, 8, n)
    return (rng.integers(0, 2, n) << 23 | rng.integers(0, 384, n) << 14 | rng.integers(0, 64, n) << 8 | pattern).astype(
        "<u4"
    )


WORDS: dict[str, tuple[LhcbBankType, Callable[[np.random.Generator, int], NDArray[np.uint32]]]] = {
    "retina": (LhcbBankType.VP_RETINA_CLUSTER, retina_words),
    "superpixel": (LhcbBankType.VP, super_pixel_words),
}


def an_event_of(n_words: int, encoding: str, seed: int) -> list[RawBank]:
    """An event of this many words, spread over all 104 pairs of sensors."""
    rng = np.random.default_rng(seed)
    kind, words = WORDS[encoding]
    shares = [len(part) for part in np.array_split(np.arange(n_words), 104)]
    sources = [(2 if pair % 4 < 2 else 3) << 11 | pair for pair in range(104)]
    return [
        RawBank(kind, 4, source, memoryview(words(rng, share).tobytes()))
        for source, share in zip(sources, shares, strict=True)
    ]


@pytest.fixture(params=["retina", "superpixel"])
def encoding(request: pytest.FixtureRequest) -> VeloEncoding:
    chosen: VeloEncoding = request.param
    return chosen


@pytest.fixture
def backend(request: pytest.FixtureRequest) -> Iterator[PoisonedBackend]:
    made = PoisonedBackend(0xFF, threads=getattr(request, "param", 1))
    yield made
    made.close()


def test_a_slot_of_the_default_node_takes_at_most_3_gib_of_a_device() -> None:
    plan = plan_memory(HLT1_SEQUENCE, NODE_LIMITS, fuse_events=False)
    assert plan.memory.device <= 3 * GIB
    everything = plan_memory(HLT1_SEQUENCE, NODE_LIMITS, retain="all", fuse_events=False)
    assert everything.memory.device > 2 * plan.memory.device


def test_a_slot_of_the_default_node_takes_half_a_gib_of_the_host() -> None:
    plan = plan_memory(HLT1_SEQUENCE, NODE_LIMITS, fuse_events=True)
    assert plan.slot_bytes <= GIB // 2
    assert plan.thread.nbytes <= 8 << 20


# On a device: one kernel after the other over all events, in the arena of the plan.


def on_device(mep: EncodedMep, *, poison: int, shared: bool, retain: Retain = ()) -> dict[str, NDArray[Any]]:
    limits = limits_of(mep)
    workspace = an_engine(CpuBackend(CHAIN.kernels), limits).create_workspace()
    fill(workspace, mep)
    inputs = ("input.bytes", "input.mfp_rows", "input.mep_rows", "input.event_rows", "events.flags")
    given = {name: workspace.host_array(name).copy() for name in inputs}
    given["velo_geometry"] = np.frombuffer(BUILT_IN.to_bytes(), dtype=np.float32)
    plan = plan_memory(HLT1_SEQUENCE, limits, retain=retain, fuse_events=False) if shared else None
    return run_algorithms(tuple(UNCUT.configure(HLT1_SEQUENCE)), given, mep.n_events, limits, fill=poison, plan=plan)


def assert_an_arena_changes_nothing(mep: EncodedMep) -> None:
    """Check that outputs are equal, and retained columns where the kernels wrote them; at other places unshared memory
    keeps its fill value."""
    zeros = on_device(mep, poison=0, shared=False)
    ones = on_device(mep, poison=0xFF, shared=False)
    outputs = [column.name for column in HLT1_SEQUENCE.columns if column.role & Role.OUTPUT]
    for poison in POISONS:
        found = on_device(mep, poison=poison, shared=True)
        assert [name for name in outputs if found[name].tobytes() != zeros[name].tobytes()] == []
    found = on_device(mep, poison=0xA5, shared=True, retain=RETAINED)
    for name in RETAINED:
        expected, other = zeros[name].view(np.uint8), ones[name].view(np.uint8)
        written = expected == other
        assert written.any()
        np.testing.assert_array_equal(found[name].view(np.uint8)[written], expected[written], err_msg=name)


def test_on_a_device_columns_that_share_an_arena_hold_the_same_results(encoding: VeloEncoding) -> None:
    assert_an_arena_changes_nothing(simulated(encoding))


def test_on_a_device_the_largest_event_fits_in_a_shared_arena(encoding: VeloEncoding) -> None:
    large = an_event_of(MAX_CLUSTERS_PER_EVENT, encoding, seed=2)
    assert_an_arena_changes_nothing(encode_mep(CHAIN, [large, an_event_of(500, encoding, 3), large]))


# On the CPU: threads with their own memory.


@pytest.mark.parametrize("threads", [1, 2, 4])
def test_threads_with_scratch_of_their_own_find_what_a_batch_without_sharing_finds(
    encoding: VeloEncoding, threads: int
) -> None:
    mep = simulated(encoding)
    expected = unshared(mep)
    for poison in POISONS:
        backend = PoisonedBackend(poison, threads)
        workspace = an_engine(backend, limits_of(mep)).create_workspace()
        for _ in range(3):
            assert run(workspace, mep) == expected
        backend.close()


@pytest.mark.parametrize("threads", [1, 3])
def test_real_events_give_the_same_with_and_without_sharing(shared: Path, encoding: VeloEncoding, threads: int) -> None:
    geometry = VeloGeometry.load(shared / "data" / "lhcb-geometry")
    mep = encode_mep(CHAIN, real_events(shared, encoding) * 3)
    backend = PoisonedBackend(0xFF, threads)
    workspace = an_engine(backend, limits_of(mep), geometry).create_workspace()
    assert run(workspace, mep) == unshared(mep, geometry)
    backend.close()


def test_an_event_does_not_see_data_of_the_previous_event_of_the_thread(
    encoding: VeloEncoding, backend: PoisonedBackend
) -> None:
    events = [list(banks) for banks in simulated(encoding).events]
    limits = BatchLimits(events=1, meps=1, input_bytes=2 << 20, rows=512)
    engine = an_engine(backend, limits)
    workspace = engine.create_workspace()
    for banks in events:
        mep = encode_mep(CHAIN, [banks])
        backend.poison_blocks(engine.plan.thread.nbytes)
        poisoned = run(workspace, mep)
        assert poisoned == unshared(mep)


def test_retained_columns_have_the_content_that_they_have_without_sharing(
    encoding: VeloEncoding, backend: PoisonedBackend
) -> None:
    mep = simulated(encoding)
    workspace = an_engine(backend, limits_of(mep), retain=RETAINED).create_workspace()
    run(workspace, mep)
    found = {}
    for poison in (0, 0xFF):
        other = PoisonedBackend(poison)
        everything = an_engine(other, limits_of(mep), retain="all").create_workspace()
        run(everything, mep)
        found[poison] = {name: everything.fetch(name).view(np.uint8) for name in RETAINED}
        other.close()
    for name in RETAINED:
        written = found[0][name] == found[0xFF][name]
        assert written.any()
        np.testing.assert_array_equal(
            workspace.fetch(name).view(np.uint8)[written], found[0][name][written], err_msg=name
        )


@pytest.mark.parametrize("backend", [1, 2], indirect=True)
def test_the_largest_events_fit_into_the_memory_of_a_thread(encoding: VeloEncoding, backend: PoisonedBackend) -> None:
    most = an_event_of(MAX_CLUSTERS_PER_EVENT, encoding, seed=2)
    beyond = an_event_of(MAX_CLUSTERS_PER_EVENT + 1, encoding, seed=3)
    mep = encode_mep(CHAIN, [an_event_of(500, encoding, 4), most, beyond, an_event_of(20_000, encoding, 5), most])
    workspace = an_engine(backend, limits_of(mep)).create_workspace()
    assert run(workspace, mep) == unshared(mep)
    clusters = workspace.host_array("velo_clusters.count")[:5].tolist()
    overflow = (workspace.host_array("events.flags")[:5] & int(EventFlag.OVERFLOW)).tolist()
    assert clusters[2] == 0
    assert overflow[2] == int(EventFlag.OVERFLOW)
    assert clusters[1] == clusters[4] > 50_000
    assert overflow[0] == 0


def test_a_batch_with_more_clusters_than_it_may_hold_gives_the_same_with_and_without_sharing(
    encoding: VeloEncoding, backend: PoisonedBackend
) -> None:
    mep = encode_mep(CHAIN, [an_event_of(12_000, encoding, seed) for seed in range(4)])
    limits = BatchLimits(events=4, meps=1, input_bytes=mep.data.nbytes, rows=len(mep.fragments))
    everything = PoisonedBackend()
    expected = run(an_engine(everything, limits, retain="all").create_workspace(), mep)
    assert run(an_engine(backend, limits).create_workspace(), mep) == expected
    everything.close()


@pytest.mark.parametrize("backend", [2], indirect=True)
def test_workspaces_of_one_back_end_may_share_the_memory_of_its_threads(backend: PoisonedBackend) -> None:
    mep = simulated("retina")
    expected = unshared(mep)
    small = an_engine(backend, limits_of(mep)).create_workspace()
    large = an_engine(backend, BatchLimits(events=64, meps=4, input_bytes=8 << 20, rows=4096))
    others = [large.create_workspace(), large.create_workspace()]
    for workspace in (small, *others):
        fill(workspace, mep)
        workspace.submit()
    for workspace in (small, *others):
        workspace.wait()
        assert results(workspace) == expected


def test_a_profile_counts_the_kernels_of_threads_with_scratch(backend: PoisonedBackend) -> None:
    mep = simulated("retina")
    workspace = an_engine(backend, limits_of(mep)).create_workspace()
    queue = workspace.queue
    assert isinstance(queue, CpuQueue)
    queue.profile = True
    assert run(workspace, mep) == unshared(mep)
    profile = queue.take_profile()
    assert set(profile) == {algorithm.kernel for algorithm in workspace.sequence}
    assert min(profile.values()) > 0
