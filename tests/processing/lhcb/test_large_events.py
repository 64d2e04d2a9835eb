"""Large events have separate launches with larger blocks: each event is computed once, with the same results."""

from __future__ import annotations

from collections import defaultdict
from dataclasses import replace
from functools import cache
from pathlib import Path

import numpy as np
import pytest
from numpy.typing import NDArray

from hltnode.processing.framework.backends.cuda import CudaBackend
from hltnode.processing.framework.batch import MepInBatch
from hltnode.processing.framework.declaration import Algorithm, AlgorithmSequence, EventSizes
from hltnode.processing.framework.offline_runner import encode_mep
from hltnode.processing.lhcb.chain import CHAIN, HLT1_SEQUENCE, geometry_constants
from hltnode.processing.lhcb.geometry.velo import VeloGeometry
from hltnode.processing.lhcb.offline.simulation.banks.velo_encoding import VeloEncoding
from hltnode.processing.lhcb.offline.simulation.velo_generator import simulate_events
from hltnode.processing.lhcb.velo.tracking.search_by_triplet import search_by_triplet
from tests.processing.chains.reference import Reference
from tests.processing.framework.cupy_stand_in import install
from tests.processing.framework.kernel_runner import emulate, n_blocks
from tests.processing.framework.simulated_gpu import SimulatedGpu
from tests.processing.lhcb.velo.dense_events import overlaid
from tests.processing.lhcb.whole_chain import reference_of
from tests.ptx.chain import PtxLauncher
from tests.ptx.kernels import machine_of, module_of

GEOMETRY = VeloGeometry.builtin()


@cache
def small_and_large(encoding: VeloEncoding) -> Reference:
    events = list(simulate_events(4, seed=4, geometry=GEOMETRY, velo_banks=encoding))
    return reference_of(encode_mep(CHAIN, [events[0], overlaid(events), events[1]], encoding=encoding), GEOMETRY)


def cut_at(min_size: int) -> AlgorithmSequence:
    """The sequence, with another limit between small and large events."""
    return AlgorithmSequence(
        tuple(
            replace(a, large_events=replace(a.large_events, min_size=min_size)) if a.large_events else a
            for a in HLT1_SEQUENCE
        )
    )


def between(reference: Reference) -> int:
    """A limit on clusters between the small events and the large one."""
    sizes = np.frombuffer(reference.made["velo_hits.module_pair_offset"], dtype=np.uint32).reshape(-1, 27)[:, 26]
    assert 2 * max(sizes[0], sizes[2]) < sizes[1]
    return int(sizes[1]) * 3 // 4


class EmulatedGpu:
    """Runs each launch with its own block size in the block emulator, and records the sizes."""

    def __init__(self) -> None:
        self.blocks: dict[str, list[int]] = defaultdict(list)

    def __call__(
        self, algorithm: Algorithm, sizes: EventSizes, parameters: NDArray[np.uint8], header: NDArray[np.void]
    ) -> None:
        self.blocks[algorithm.name].append(sizes.block_size)
        blocks = n_blocks(algorithm, header)
        emulate(CHAIN.kernels, algorithm.name, parameters.ctypes.data, blocks, sizes.block_size)


@pytest.mark.parametrize("encoding", ["retina", "superpixel"])
def test_results_do_not_depend_on_who_is_large(encoding: VeloEncoding) -> None:
    reference = small_and_large(encoding)
    for limit in (1, between(reference), 0xFFFFFFFF):
        gpu = EmulatedGpu()
        assert reference.differences(gpu, sequence=cut_at(limit), sizes_apart=True) == []
        assert gpu.blocks[search_by_triplet.name] == [search_by_triplet.block_size, 256]


@pytest.mark.timeout(300)
@pytest.mark.parametrize("encoding", ["retina", "superpixel"])
def test_ptx_gives_the_results_of_the_cpu_for_both_launches(encoding: VeloEncoding) -> None:
    reference = small_and_large(encoding)
    machine = machine_of(module_of("90"))
    launcher = PtxLauncher(machine)
    sequence = cut_at(between(reference))
    assert reference.differences(launcher, machine.allocate, sequence=sequence, sizes_apart=True) == []
    small, large = [it.record for it in launcher.launched if it.algorithm.name == search_by_triplet.name]
    # Events of the other launch cost almost nothing.
    assert max(small.block_instructions[1], *large.block_instructions[[0, 2]]) < 400
    assert small.block_paths[0] > 1000
    assert large.block_paths[1] > small.block_paths[0]
    assert large.block_paths[1] < large.block_instructions[1] / 2


def test_a_gpu_runs_both_launches_and_finds_what_the_cpu_finds(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("CACHE_DIRECTORY", str(tmp_path))
    cupy = install(monkeypatch, SimulatedGpu(CHAIN.kernels))
    reference = small_and_large("retina")
    chain = replace(CHAIN.with_sequence("velo"), sequence=cut_at(between(reference)))
    trigger = CHAIN.load_trigger(None, "velo")
    engine = chain.create_engine(
        CudaBackend(CHAIN.kernels), geometry_constants(GEOMETRY), trigger, reference.limits, retain="all"
    )
    events = list(simulate_events(4, seed=4, geometry=GEOMETRY))
    mep = encode_mep(CHAIN, [events[0], overlaid(events), events[1]], encoding="retina")
    workspace = engine.create_workspace()
    workspace.input_data[: mep.data.nbytes] = mep.data
    workspace.seal([MepInBatch(mep.n_events, mep.fragments)])
    workspace.submit()
    workspace.wait()
    assert [name for name, made in reference.made.items() if workspace.fetch(name).tobytes() != made] == []
    kernels = [kernel for _, kernel in cupy.gpu.done]
    assert kernels.count(search_by_triplet.name) == 2
