"""Runs declared algorithms on given buffers: tests of one kernel need no events and no engine.

Kernels run as in the CPU back end, or with blocks of many threads on the CPU (block_emulator.cpp). Both ways accept
the kernels of any chain.
"""

from __future__ import annotations

import ctypes
import functools
import subprocess
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from hltnode.processing.framework.backends import _executor
from hltnode.processing.framework.backends.kernel_library import KernelLibrary
from hltnode.processing.framework.batch import BATCH_HEADER, batch_header
from hltnode.processing.framework.codegen import parameter_columns, parameter_words
from hltnode.processing.framework.declaration import Algorithm, EventSizes
from hltnode.processing.framework.kernel_sources import KernelSources
from hltnode.processing.framework.limits import BatchLimits
from hltnode.processing.framework.memory_plan import MemoryPlan
from hltnode.processing.lhcb.chain import CHAIN
from tests.processing.framework.build_cache import built, version_of
from tests.processing.framework.chain_builder import compiler
from tests.processing.framework.session_folders import session_folder

EMULATOR = Path(__file__).parent / "block_emulator.cpp"

Launch = Callable[[Algorithm, EventSizes, NDArray[np.uint8], NDArray[np.void]], None]
"""Runs one launch of an algorithm with its block of parameters and the batch header."""

Allocate = Callable[[int, int], NDArray[np.uint8]]
"""Allocates a number of bytes, filled with a value."""


def n_blocks(algorithm: Algorithm, header: NDArray[np.void]) -> int:
    """Number of blocks of an algorithm for the batch of a header."""
    events, rows, fragments = (int(header[name][0]) for name in ("n_events", "n_rows", "n_fragments"))
    return algorithm.n_blocks(events=events, rows=rows, fragments=fragments)


def program_parts(algorithm: Algorithm) -> list[tuple[int, int, int, bool]]:
    """The parts of a program whose only step is an algorithm; they keep their order."""
    return [] if algorithm.parts is None else [(0, algorithm.parts, 0, False)]


def host_memory(nbytes: int, fill: int) -> NDArray[np.uint8]:
    """Allocates memory of the CPU."""
    return np.full(nbytes, fill, dtype=np.uint8)


def run_algorithms(
    algorithms: Sequence[Algorithm],
    given: Mapping[str, NDArray[Any]],
    n_events: int,
    limits: BatchLimits,
    launch: Launch | None = None,
    *,
    fill: int = 0,
    plan: MemoryPlan | None = None,
    allocate: Allocate = host_memory,
    sizes_apart: bool = False,
) -> dict[str, NDArray[Any]]:
    """All columns by name after the algorithms ran, one after the other over all events, as on a device.

    The bytes of columns start as `fill`; `given` fills their first elements and must not exceed the declared bound. The
    rows of `input.mfp_rows` belong to one MEP. With a plan, its columns lie in one arena, as on a device; all other
    columns have their own memory. `sizes_apart`: large events have their own launch, as on a GPU.
    """
    arena = allocate(0 if plan is None else plan.arena.nbytes, fill)
    header = allocate(BATCH_HEADER.dtype.itemsize, 0).view(BATCH_HEADER.dtype)
    header[0] = (n_events, len(given.get("input.mfp_rows", ())), 1, len(given.get("input.mfp_rows", ())) * n_events)
    columns: dict[str, NDArray[Any]] = {batch_header.name: header}
    for algorithm in algorithms:
        for column in algorithm.columns:
            if column.name not in columns:
                region = None if plan is None else plan.arena.region(column.name)
                if region is None:
                    memory = allocate(column.nbytes(limits), fill)
                else:
                    memory = arena[region.offset : region.offset + region.nbytes]
                columns[column.name] = content = memory.view(column.dtype)
                if column.name in given:
                    filling = _as_dtype(given[column.name], column.dtype)
                    content[: len(filling)] = filling
    run = launch or on_cpu()
    for algorithm in algorithms:
        pointers = np.array(
            [columns[column.name].ctypes.data for column in parameter_columns(algorithm)], dtype=np.uint64
        )
        for sizes in algorithm.launches if sizes_apart else (EventSizes(algorithm.block_size),):
            words = np.array(parameter_words(algorithm, limits, sizes), dtype=np.uint32)
            parameters = np.concatenate([pointers.view(np.uint8), words.view(np.uint8)])
            run(algorithm, sizes, parameters, header)
    return columns


def _as_dtype(values: NDArray[Any], dtype: np.dtype[Any]) -> NDArray[Any]:
    """A flat array of the column's dtype; records may be given as plain numbers in their order."""
    if dtype.names is not None:
        return np.frombuffer(np.ascontiguousarray(values).tobytes(), dtype=dtype)
    return np.ascontiguousarray(values, dtype=dtype).ravel()


def on_cpu(
    target: str | None = None, kernels: KernelSources = CHAIN.kernels, *, common: bool = False, threads: int = 1
) -> Launch:
    """Run with this number of threads, compiled for `target` or for the best instruction set of this machine.

    common: run the common kernel, not its form for the CPU."""

    library = _library(kernels)

    def launch(
        algorithm: Algorithm, _sizes: EventSizes, parameters: NDArray[np.uint8], header: NDArray[np.void]
    ) -> None:
        address = library.address(target or library.targets[0], algorithm.kernel, common=common)
        step = (address, parameters.ctypes.data, int(algorithm.grid), parameters.nbytes)
        program = _executor.Program([step], header.ctypes.data, parts=program_parts(algorithm))
        _executor.Executor(threads).run(program)

    return launch


@functools.cache
def _library(kernels: KernelSources) -> KernelLibrary:
    """Cached, because opening reads every source of the kernels to compare their digest."""
    return KernelLibrary(kernels)


def with_block_size(block_size: int, *, backward: bool = False, kernels: KernelSources = CHAIN.kernels) -> Launch:
    """Run with blocks of `block_size` emulated threads, in forward or backward order.

    Skips the test if there is no C++ compiler.
    """

    def launch(
        algorithm: Algorithm, _sizes: EventSizes, parameters: NDArray[np.uint8], header: NDArray[np.void]
    ) -> None:
        blocks = n_blocks(algorithm, header)
        emulate(kernels, algorithm.kernel, parameters.ctypes.data, blocks, block_size, backward=backward)

    return launch


def emulate(
    kernels: KernelSources, name: str, parameters: int, n_blocks: int, block_size: int, *, backward: bool = False
) -> None:
    """Run a kernel on a grid in the block emulator; `parameters` is the address of its block of parameters."""
    result = block_emulator(kernels).run_kernel(
        name.encode(),
        ctypes.c_void_p(parameters),
        ctypes.c_uint32(n_blocks),
        ctypes.c_uint32(block_size),
        ctypes.c_int(backward),
    )
    assert result != 1, f"no kernel named {name}"
    assert result == 0, f"threads of {name} wait for each other at different barriers"


def parameter_bytes(kernels: KernelSources, name: str) -> int:
    """Size of the struct of parameters of a kernel."""
    nbytes = int(block_emulator(kernels).parameter_bytes(name.encode()))
    assert nbytes > 0, f"no kernel named {name}"
    return nbytes


@functools.cache
def generated_kernels(source: str, folders: tuple[Path, ...], name: str) -> KernelSources:
    """Write a generated kernel to a file, for tools that take the kernels of a chain."""
    folder = session_folder("hltnode-generated-")
    (folder / "generated.h").write_text(f"#pragma once\n{source}\n#define HLT_KERNELS(X) X({name})\n")
    return KernelSources("generated.h", (folder, *folders), "")


@functools.cache
def block_emulator(kernels: KernelSources) -> ctypes.CDLL:
    """The emulator with the kernels of a chain, compiled once for all workers."""
    options = ["-std=c++17", "-O1", "-ffp-contract=off", "-fno-math-errno", "-shared", "-fPIC"]
    options += [f'-DHLT_KERNEL_LIST="{kernels.header}"']
    folders = [f"-I{folder}" for folder in kernels.folders]
    source = EMULATOR.read_text()

    def compile_emulator(path: Path) -> None:
        subprocess.run([compiler(), *options, *folders, str(EMULATOR), "-o", str(path)], check=True)

    parts = [version_of(compiler()), *options, kernels.digest(source), source]
    return ctypes.CDLL(str(built("block_emulator.so", parts, compile_emulator)))
