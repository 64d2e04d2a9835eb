"""Functions of CUDA in kernels: as plain C++, in the block emulator and as PTX they do what the manual says."""

from __future__ import annotations

import ctypes
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from numpy.typing import NDArray

from hltnode.processing.framework.backends import _executor
from hltnode.processing.framework.backends.cpu_compiler import compile_kernel
from hltnode.processing.framework.backends.cuda_kernels import compile_options
from hltnode.processing.framework.backends.kernel_library import KernelLibrary
from hltnode.processing.framework.codegen import generated_source
from hltnode.processing.framework.collections import PROCESSING, U32, U64, Column
from hltnode.processing.framework.declaration import Algorithm, EventSizes, GeneratedKernel, Grid
from hltnode.processing.framework.limits import BatchLimits
from hltnode.processing.lhcb.chain import CHAIN
from tests.processing.framework.chain_builder import compiler
from tests.processing.framework.kernel_runner import (
    Allocate,
    Launch,
    generated_kernels,
    host_memory,
    run_algorithms,
    with_block_size,
)
from tests.processing.framework.nvrtc_library import nvrtc_of
from tests.ptx.chain import PtxLauncher
from tests.ptx.kernels import CUDA_VERSION, machine_of
from tests.ptx.nvrtc import ptx_of_source
from tests.ptx.parser import parse

N = 200
BITS, MATCHES, OLD = "bits", "matches", "old"


def column(name: str, dtype: np.dtype[Any], width: int = 1) -> Column:
    return Column(name=name, dtype=dtype, bound=lambda _: N, width=width)


GIVEN = column("given", U32, 3)
"""Low word, high word, shift."""
RESULTS = column("bits", U32, 8)
"""Funnel shifts left, right, left and right with clamp; ffs, clz of the low word; ffs, clz of both words."""
SAME = column("same", U32)
"""Lanes of the warp with the same low bits of the shift."""
TAKEN = column("taken", U32)
"""Values that threads took in exchange for their number + 1."""
CELLS = column("cells", U64)
"""0: sum of all words of 64 bits. 1: largest, 2: the exchanged word, 3: bits, 4: count of replaced zeros, 5: sum."""

BODY = """
HLT_KERNEL(device_functions)
{
    if (blockIdx.x != 0) return;
    uint32_t* const exchanged = reinterpret_cast<uint32_t*>(p.cells + 2);
    uint32_t* const words = reinterpret_cast<uint32_t*>(p.cells + 3);
    for (uint32_t base = 0; base < 200u; base += blockDim.x) {
        const uint32_t i = base + threadIdx.x;
        const bool is_there = i < 200u;
        const uint32_t low = is_there ? p.given[3u * i] : 0u, high = is_there ? p.given[3u * i + 1u] : 0u;
        const uint32_t shift = is_there ? p.given[3u * i + 2u] : 0u;
        const uint32_t same = __match_any_sync(hlt::warp_lanes(), is_there ? shift % 4u : 4u);
        if (!is_there) continue;
        const uint64_t both = uint64_t{high} << 32 | low;
        uint32_t* const bits = p.bits + 8u * i;
        bits[0] = __funnelshift_l(low, high, shift);
        bits[1] = __funnelshift_r(low, high, shift);
        bits[2] = __funnelshift_lc(low, high, shift);
        bits[3] = __funnelshift_rc(low, high, shift);
        bits[4] = static_cast<uint32_t>(__ffs(static_cast<int>(low)));
        bits[5] = static_cast<uint32_t>(__clz(static_cast<int>(low)));
        bits[6] = static_cast<uint32_t>(__ffsll(static_cast<long long>(both)));
        bits[7] = static_cast<uint32_t>(__clzll(static_cast<long long>(both)));
        p.same[i] = same;
        atomicAdd(p.cells, both);
        p.taken[i] = atomicExch(exchanged, i + 1u);
        __threadfence();
        hlt::raise_between_blocks(words, low);
        hlt::lower_between_blocks(words + 1, low);
        hlt::set_bits_between_blocks(words + 2, 1u << i % 32u);
        hlt::replace_between_blocks(words + 3, i, i + 1u);
        hlt::add_between_blocks(p.cells + 5, both);
        hlt::add_between_blocks(words + 6, 1u);
    }
}
"""

ALGORITHM = Algorithm(
    name="device_functions",
    source=Path(__file__),
    grid=Grid.ONE,
    block_size=32,
    reads=(GIVEN,),
    updates=(CELLS,),
    writes=(RESULTS, SAME, TAKEN),
    generated=GeneratedKernel(("framework/device/between_blocks.cuh",), lambda: BODY, lambda *_: iter(())),
)
SOURCE = generated_source(ALGORITHM)
LIMITS = BatchLimits(events=1, input_bytes=64)

Run = Callable[[], tuple[dict[str, NDArray[Any]], int]]


def given() -> NDArray[np.uint32]:
    """Words with few and many bits, and every shift from 0 to 40."""
    rng = np.random.default_rng(3)
    words = rng.integers(0, 1 << 32, (N, 3), np.uint64).astype(np.uint32)
    words[:, 0] >>= rng.integers(0, 32, N).astype(np.uint32)
    words[:, 1] >>= rng.integers(0, 32, N).astype(np.uint32)
    words[:8, 0] = 0
    words[4:12, 1] = 0
    words[:, 2] = np.arange(N) % 41
    return words


def run(launch: Launch, allocate: Allocate = host_memory) -> dict[str, NDArray[Any]]:
    cells = np.zeros(N, np.uint64)
    cells.view(np.uint32)[7] = 0xFFFFFFFF  # the second word of cell 3, which the kernel lowers
    return run_algorithms((ALGORITHM,), {"given": given(), "cells": cells}, 1, LIMITS, launch, allocate=allocate)


def by_compiler() -> tuple[dict[str, NDArray[Any]], int]:
    compiler()
    target = KernelLibrary(CHAIN.kernels).targets[0]

    def launch(algorithm: Algorithm, _: EventSizes, parameters: NDArray[np.uint8], header: NDArray[np.void]) -> None:
        library = compile_kernel(algorithm.name, SOURCE, (PROCESSING,), target, "")
        assert library is not None
        address = ctypes.cast(library.run_block, ctypes.c_void_p).value
        assert address is not None
        step = (address, parameters.ctypes.data, int(algorithm.grid), parameters.nbytes)
        _executor.Executor(1).run(_executor.Program([step], header.ctypes.data))

    return run(launch), 1


def by_blocks(block_size: int) -> Run:
    return lambda: (
        run(with_block_size(block_size, kernels=generated_kernels(SOURCE, (PROCESSING,), ALGORITHM.name))),
        block_size,
    )


def by_ptx(block_size: int, architecture: str) -> Run:
    def evaluate() -> tuple[dict[str, NDArray[Any]], int]:
        ptx = ptx_of_source(nvrtc_of(CUDA_VERSION), SOURCE, architecture, *compile_options(CHAIN.kernels))
        machine = machine_of(parse(ptx))
        return run(PtxLauncher(machine, block_size), machine.allocate), block_size

    return evaluate


@pytest.fixture(
    params=[by_compiler, by_blocks(1), by_blocks(32), by_blocks(100), by_ptx(32, "75"), by_ptx(100, "90")],
    ids=["compiler", "blocks of 1", "of 32", "of 100", "PTX for sm_75", "PTX for sm_90"],
    scope="module",
)
def results(request: pytest.FixtureRequest) -> tuple[dict[str, NDArray[Any]], int]:
    """The columns after the kernel, and its block size."""
    found: tuple[dict[str, NDArray[Any]], int] = request.param()
    return found


def shifted(low: int, high: int, shift: int) -> list[int]:
    """Funnel shifts by their definition: of the 64-bit word, modulo 32 or at most 32."""
    both, modulo, at_most = high << 32 | low, shift & 31, min(shift, 32)
    words = [both << modulo >> 32, both >> modulo, both << at_most >> 32, both >> at_most]
    return [word & 0xFFFFFFFF for word in words]


def test_functions_of_bits(results: tuple[dict[str, NDArray[Any]], int]) -> None:
    expected = []
    for low, high, shift in given().tolist():
        both = high << 32 | low
        first = [(word & -word).bit_length() for word in (low, both)]
        expected.append([*shifted(low, high, shift), first[0], 32 - low.bit_length(), first[1], 64 - both.bit_length()])
    assert results[0]["bits"].reshape(N, 8).tolist() == expected


def test_match_any_gives_the_lanes_of_the_same_value(results: tuple[dict[str, NDArray[Any]], int]) -> None:
    columns, block_size = results
    value = given()[:, 2] % 4
    for i, same in enumerate(columns["same"].tolist()):
        first = i // block_size * block_size + i % block_size // 32 * 32
        last = min(first + 32, i // block_size * block_size + block_size)
        lanes = sum(1 << (j - first) for j in range(first, min(last, N)) if value[j] == value[i])
        assert same == lanes


def test_atomic_operations_lose_nothing(results: tuple[dict[str, NDArray[Any]], int]) -> None:
    columns, _ = results
    words = given().astype(np.uint64)
    total = int((words[:, 1] << np.uint64(32) | words[:, 0]).sum())
    cells, halves = columns["cells"], columns["cells"].view(np.uint32)
    assert int(cells[0]) == total > 1 << 32
    # Every number was put once, and taken once or left behind.
    assert sorted([*columns["taken"].tolist(), int(halves[4])]) == list(range(N + 1))
    assert halves[6] == given()[:, 0].max()
    assert halves[7] == given()[:, 0].min() == 0
    assert halves[8] == 0xFFFFFFFF
    assert 1 <= halves[9] <= N
    assert int(cells[5]) == total
    assert halves[12] == N
