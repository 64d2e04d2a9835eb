"""What the kernels take of a multiprocessor, and how many of their warps it runs at the same time."""

from __future__ import annotations

import pytest

from hltnode.processing.lhcb.chain import CHAIN
from tests.processing.framework.nvrtc_library import nvrtc_of
from tests.ptx.kernels import CUDA_VERSION
from tests.ptx.nvrtc import Resources, resources
from tests.ptx.occupancy import MULTIPROCESSORS


@pytest.mark.timeout(300)
def test_no_kernel_spills_registers_and_of_all_many_blocks_or_one_of_the_largest_size_run() -> None:
    used = resources(nvrtc_of(CUDA_VERSION), "90", CHAIN.kernels)
    assert used.keys() == {algorithm.name for algorithm in CHAIN.algorithms}
    for name, of_kernel in used.items():
        assert of_kernel.spill_stores == of_kernel.spill_loads == 0, name
        assert 8 <= of_kernel.registers <= 128, name
        assert MULTIPROCESSORS["90"].occupancy(of_kernel, 256) > 0, name
        assert MULTIPROCESSORS["90"].blocks_of(of_kernel, 64) >= 8, name
    assert used["velo_sort_by_phi"].shared > 2 * 26 * 128


@pytest.mark.parametrize(
    ("architecture", "registers", "shared", "threads", "occupancy"),
    [
        ("90", 32, 0, 128, 1.0),
        ("90", 32, 0, 32, 0.5),  # 32 blocks
        ("90", 80, 0, 64, 24 / 64),  # 2,560 registers for a warp; warps get them by four
        ("90", 32, 14_400, 64, 30 / 64),  # 15,488 bytes with those of the system: 15 blocks
        ("80", 32, 14_400, 64, 20 / 64),
    ],
)
def test_what_is_short_first_limits_the_warps_that_run(
    architecture: str, registers: int, shared: int, threads: int, occupancy: float
) -> None:
    used = Resources(registers, stack=0, spill_stores=0, spill_loads=0, shared=shared)
    assert MULTIPROCESSORS[architecture].occupancy(used, threads) == occupancy
