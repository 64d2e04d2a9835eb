"""rounded_to_half gives the numbers of numpy.float16: as compiled C++ and as PTX."""

from __future__ import annotations

from pathlib import Path

import numpy as np
from numpy.typing import NDArray

from hltnode.processing.framework.backends.cuda_kernels import compile_options
from hltnode.processing.framework.codegen import generated_source
from hltnode.processing.framework.collections import F32, PROCESSING, Column
from hltnode.processing.framework.declaration import Algorithm, GeneratedKernel, Grid
from hltnode.processing.framework.limits import BatchLimits
from hltnode.processing.lhcb.chain import CHAIN
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

N = 2048
GIVEN, ROUNDED = (Column(name=name, dtype=F32, bound=lambda _: N) for name in ("given", "rounded"))
BODY = f"""
HLT_KERNEL(half_precision)
{{
    if (blockIdx.x != 0) return;
    for (uint32_t i = threadIdx.x; i < {N}u; i += blockDim.x) p.rounded[i] = hlt::rounded_to_half(p.given[i]);
}}
"""
ALGORITHM = Algorithm(
    name="half_precision",
    source=Path(__file__),
    grid=Grid.ONE,
    block_size=32,
    reads=(GIVEN,),
    writes=(ROUNDED,),
    generated=GeneratedKernel(("lhcb/tracks/looking_forward/half_precision.cuh",), lambda: BODY, lambda *_: iter(())),
)
SOURCE = generated_source(ALGORITHM)


def given() -> NDArray[np.float32]:
    """Numbers of every size, halves, the middles between neighbouring halves and what is beside them."""
    rng = np.random.default_rng(7)
    halves = rng.integers(0, 0x7BFF, 300).astype(np.uint16)
    halves[:6] = 0, 1, 0x3FF, 0x400, 0x3FE, 0x7BFE  # zero, smallest, both sides of the smallest normal one, largest
    low, high = (bits.view(np.float16).astype(np.float32) for bits in (halves, halves + np.uint16(1)))
    middle = ((low.astype(np.float64) + high) / 2).astype(np.float32)
    largest = np.array([65504, 65519.996, 65520, 1e6, 3.4e38, np.inf, np.nan, 1e-40], np.float32)
    beside = np.nextafter(middle, np.float32(0)), np.nextafter(middle, np.float32(np.inf))
    made = np.concatenate([low, high, middle, *beside, largest])
    rest = np.exp(rng.uniform(-20, 12, N - len(made))).astype(np.float32)
    made = np.concatenate([made, rest])
    return np.where(rng.random(N) < 0.5, made, -made).astype(np.float32)


def rounded(launch: Launch, allocate: Allocate = host_memory) -> NDArray[np.float32]:
    limits = BatchLimits(events=1, input_bytes=64)
    return run_algorithms((ALGORITHM,), {"given": given()}, 1, limits, launch, allocate=allocate)["rounded"]


def assert_halves(made: NDArray[np.float32]) -> None:
    with np.errstate(over="ignore"):
        expected = given().astype(np.float16).astype(np.float32)
    is_nan = np.isnan(expected)
    assert np.array_equal(np.isnan(made), is_nan)
    assert np.array_equal(made[~is_nan].view(np.uint32), expected[~is_nan].view(np.uint32))


def test_compiled_code_rounds_to_half_precision() -> None:
    assert_halves(rounded(with_block_size(32, kernels=generated_kernels(SOURCE, (PROCESSING,), ALGORITHM.name))))


def test_device_code_rounds_to_half_precision() -> None:
    ptx = ptx_of_source(nvrtc_of(CUDA_VERSION), SOURCE, "90", *compile_options(CHAIN.kernels))
    machine = machine_of(parse(ptx))
    assert_halves(rounded(PtxLauncher(machine, 32), machine.allocate))
