"""Runs declared algorithms on the CPU with given buffers: tests of one kernel need no events and no engine."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

import numpy as np
from hltnode.processing import _kernels
from hltnode.processing.batch import BATCH_HEADER, BatchLimits
from hltnode.processing.hlt1.declaration import Algorithm
from numpy.typing import NDArray


def run_algorithms(
    algorithms: Sequence[Algorithm],
    given: Mapping[str, NDArray],
    n_events: int,
    limits: BatchLimits,
    *,
    target: str | None = None,
) -> dict[str, NDArray]:
    """All buffers by name after the algorithms ran on one thread.

    Buffers start as zeros; `given` fills their first elements and must not exceed the declared bound.
    """
    buffers: dict[str, NDArray] = {}
    for algorithm in algorithms:
        for buffer in algorithm.buffers:
            if buffer.name not in buffers:
                content = np.zeros(buffer.count(limits), dtype=buffer.dtype)
                if buffer.name in given:
                    filling = np.ascontiguousarray(given[buffer.name], dtype=buffer.dtype).ravel()
                    content[: len(filling)] = filling
                buffers[buffer.name] = content
    header = np.zeros(1, dtype=BATCH_HEADER)
    header["n_events"] = n_events
    header["n_rows"] = len(given.get("mfp_rows", ()))
    buffers["batch_header"] = header
    blocks = []
    for algorithm in algorithms:
        pointers = np.array([buffers[buffer.name].ctypes.data for buffer in algorithm.buffers], dtype=np.uint64)
        constants = np.array([constant.packed() for constant in algorithm.constants], dtype=np.uint32)
        blocks.append(np.concatenate([pointers.view(np.uint8), constants.view(np.uint8), np.zeros(8, np.uint8)]))
    steps = [
        (algorithm.name, block.ctypes.data, int(algorithm.grid))
        for algorithm, block in zip(algorithms, blocks, strict=True)
    ]
    program = _kernels.Program(target or _kernels.supported_targets()[0], steps, header.ctypes.data)
    _kernels.Executor(1).run(program)
    return buffers
