"""Resources of the kernels on a multiprocessor, and the number of their concurrent warps."""

from __future__ import annotations

import pytest

from tests.processing.chains.chain_under_test import ChainUnderTest
from tests.processing.chains.every_chain import CHAINS
from tests.processing.framework.nvrtc_library import nvrtc_of
from tests.ptx.kernels import CUDA_VERSION
from tests.ptx.nvrtc import Resources, resources
from tests.ptx.occupancy import MULTIPROCESSORS

FEWER_BLOCKS = {"find_jets": 6}
"""Blocks of 64 threads of kernels that have fewer than 8 at a time. `find_jets` keeps all tracks and photons of an
event in shared memory, 36 KB; it takes 1 % of its sequence on a CPU."""


@pytest.mark.expensive("assembles every kernel and reads its resources")
@pytest.mark.timeout(300)
@pytest.mark.parametrize("chain", CHAINS.values(), ids=CHAINS)
def test_no_kernel_spills_registers_and_many_blocks_or_one_of_the_largest_size_run(chain: ChainUnderTest) -> None:
    used = resources(nvrtc_of(CUDA_VERSION), "90", chain.chain.kernels)
    assert used.keys() == {algorithm.name for algorithm in chain.chain.algorithms}
    for name, of_kernel in used.items():
        assert of_kernel.spill_stores == of_kernel.spill_loads == 0, name
        assert 8 <= of_kernel.registers <= 128, name
        assert MULTIPROCESSORS["90"].occupancy(of_kernel, 256) > 0, name
        assert MULTIPROCESSORS["90"].blocks_of(of_kernel, 64) >= FEWER_BLOCKS.get(name, 8), name
    for name, nbytes in chain.shared_memory.items():
        assert used[name].shared >= nbytes, name


@pytest.mark.parametrize(
    ("architecture", "registers", "shared", "threads", "occupancy"),
    [
        ("90", 32, 0, 128, 1.0),
        ("90", 32, 0, 32, 0.5),  # 32 blocks
        ("90", 80, 0, 64, 24 / 64),  # 2,560 registers per warp; warps are allocated in groups of four
        ("90", 32, 14_400, 64, 30 / 64),  # 15,488 bytes including the system's: 15 blocks
        ("80", 32, 14_400, 64, 20 / 64),
        ("86", 32, 0, 32, 16 / 48),  # 16 blocks
        ("86", 32, 14_400, 64, 12 / 48),
    ],
)
def test_the_scarcest_resource_limits_the_running_warps(
    architecture: str, registers: int, shared: int, threads: int, occupancy: float
) -> None:
    used = Resources(registers, stack=0, spill_stores=0, spill_loads=0, shared=shared)
    assert MULTIPROCESSORS[architecture].occupancy(used, threads) == occupancy
