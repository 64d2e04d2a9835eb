"""Runs declared algorithms with given buffers: tests of one kernel need no events and no engine.

Two ways: as the CPU back end does, and with blocks of many threads on the CPU (kernels/block_emulator.cpp).
"""

from __future__ import annotations

import ctypes
import functools
import shutil
import subprocess
import tempfile
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path

import numpy as np
import pytest
from numpy.typing import NDArray

from hltnode.processing.framework.backends import _kernels
from hltnode.processing.framework.backends.cuda import KERNELS
from hltnode.processing.framework.batch import BATCH_HEADER, BatchLimits
from hltnode.processing.framework.declaration import Algorithm, Grid

EMULATOR = Path(__file__).parent / "block_emulator.cpp"

Launch = Callable[[Algorithm, NDArray[np.uint8], NDArray[np.void]], None]
"""Runs one algorithm with its block of parameters and the batch header."""


def run_algorithms(
    algorithms: Sequence[Algorithm],
    given: Mapping[str, NDArray],
    n_events: int,
    limits: BatchLimits,
    launch: Launch | None = None,
) -> dict[str, NDArray]:
    """All buffers by name after the algorithms ran.

    Buffers start as zeros; `given` fills their first elements and must not exceed the declared bound. The rows of
    `mfp_rows` belong to one MEP.
    """
    header = np.zeros(1, dtype=BATCH_HEADER)
    header[0] = (n_events, len(given.get("mfp_rows", ())), 1, len(given.get("mfp_rows", ())) * n_events)
    buffers: dict[str, NDArray] = {"batch_header": header}
    for algorithm in algorithms:
        for buffer in algorithm.buffers:
            if buffer.name not in buffers:
                buffers[buffer.name] = content = np.zeros(buffer.count(limits), dtype=buffer.dtype)
                if buffer.name in given:
                    filling = np.ascontiguousarray(given[buffer.name], dtype=buffer.dtype).ravel()
                    content[: len(filling)] = filling
    for algorithm in algorithms:
        pointers = np.array([buffers[buffer.name].ctypes.data for buffer in algorithm.buffers], dtype=np.uint64)
        words = [constant.packed() for constant in algorithm.constants]
        words += [np.uint32(capacity.count(limits)) for capacity in algorithm.capacities]
        padding = np.zeros(8, dtype=np.uint8)
        parameters = np.concatenate([pointers.view(np.uint8), np.array(words, dtype=np.uint32).view(np.uint8), padding])
        (launch or on_cpu())(algorithm, parameters, header)
    return buffers


def on_cpu(target: str | None = None) -> Launch:
    """One thread, compiled for `target` or for the best instruction set of this machine."""

    def launch(algorithm: Algorithm, parameters: NDArray[np.uint8], header: NDArray[np.void]) -> None:
        step = (algorithm.name, parameters.ctypes.data, int(algorithm.grid))
        program = _kernels.Program(target or _kernels.supported_targets()[0], [step], header.ctypes.data)
        _kernels.Executor(1).run(program)

    return launch


def with_block_size(block_size: int, *, backward: bool = False) -> Launch:
    """Blocks of `block_size` emulated threads, which take their turns in forward or backward order.

    Skips the test where there is no C++ compiler.
    """
    emulator = _emulator()

    def launch(algorithm: Algorithm, parameters: NDArray[np.uint8], header: NDArray[np.void]) -> None:
        blocks = {Grid.ONE: 1, Grid.ROWS: int(header["n_rows"][0]), Grid.EVENTS: int(header["n_events"][0])}
        result = emulator.run_kernel(
            algorithm.name.encode(),
            ctypes.c_void_p(parameters.ctypes.data),
            ctypes.c_uint32(blocks[algorithm.grid]),
            ctypes.c_uint32(block_size),
            ctypes.c_int(backward),
        )
        assert result != 1, f"no kernel named {algorithm.name}"
        assert result == 0, f"threads of {algorithm.name} wait for each other at different barriers"

    return launch


@functools.cache
def _emulator() -> ctypes.CDLL:
    compiler = shutil.which("c++") or shutil.which("g++")
    if compiler is None:
        pytest.skip("no C++ compiler: blocks of many threads cannot be emulated")
    library = Path(tempfile.mkdtemp(prefix="hltnode-emulator-")) / "block_emulator.so"
    options = ["-std=c++17", "-O1", "-ffp-contract=off", "-fno-math-errno", "-shared", "-fPIC"]
    subprocess.run([compiler, *options, f"-I{KERNELS}", str(EMULATOR), "-o", str(library)], check=True)
    return ctypes.CDLL(str(library))
