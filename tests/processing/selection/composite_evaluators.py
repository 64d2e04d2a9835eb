"""The ways to make the candidates of a composite: NumPy, the compiler of this machine, emulated blocks, PTX."""

from __future__ import annotations

import ctypes
from collections.abc import Callable
from typing import Any

import numpy as np
from numpy.typing import NDArray

from hltnode.processing.framework.backends import _executor
from hltnode.processing.framework.backends.cpu_compiler import compile_kernel
from hltnode.processing.framework.backends.cuda_kernels import compile_options
from hltnode.processing.framework.codegen import generated_source
from hltnode.processing.framework.collections import PROCESSING
from hltnode.processing.framework.declaration import Algorithm, EventSizes
from hltnode.processing.framework.limits import BatchLimits
from tests.processing.framework.chain_builder import compiler
from tests.processing.framework.kernel_runner import generated_kernels, run_algorithms, with_block_size
from tests.processing.framework.nvrtc_library import nvrtc_of
from tests.processing.selection.line_evaluators import KERNELS, targets
from tests.ptx.chain import PtxLauncher
from tests.ptx.kernels import CUDA_VERSION, machine_of
from tests.ptx.nvrtc import ptx_of_source
from tests.ptx.parser import parse


def _by_kernel(run: Callable[[Algorithm, str], Any]) -> Callable[..., dict[str, NDArray[Any]]]:
    def evaluate(algorithm: Algorithm, columns: Any, limits: BatchLimits) -> dict[str, NDArray[Any]]:
        launch, options = run(algorithm, generated_source(algorithm))
        return run_algorithms([algorithm], columns, limits.events, limits, launch, **options)

    return evaluate


def _blocks(block_size: int, *, backward: bool = False) -> Callable[..., dict[str, NDArray[Any]]]:
    return _by_kernel(
        lambda algorithm, source: (
            with_block_size(
                block_size, backward=backward, kernels=generated_kernels(source, (PROCESSING,), algorithm.name)
            ),
            {},
        )
    )


def _compiled(algorithm: Algorithm, source: str) -> Any:
    compiler()

    def launch(algorithm: Algorithm, _: EventSizes, parameters: NDArray[np.uint8], header: NDArray[np.void]) -> None:
        library = compile_kernel(algorithm.name, source, (PROCESSING,), targets()[0], "")
        assert library is not None
        address = ctypes.cast(library.run_block, ctypes.c_void_p).value
        assert address is not None
        step = (address, parameters.ctypes.data, int(algorithm.grid), parameters.nbytes)
        _executor.Executor(1).run(_executor.Program([step], header.ctypes.data))

    return launch, {}


def _ptx(_: Algorithm, source: str) -> Any:
    ptx = ptx_of_source(nvrtc_of(CUDA_VERSION), source, "90", *compile_options(KERNELS))
    machine = machine_of(parse(ptx))
    return PtxLauncher(machine, 64), {"allocate": machine.allocate}


def _numpy(algorithm: Algorithm, columns: Any, limits: BatchLimits) -> dict[str, NDArray[Any]]:
    made = {}
    for column in algorithm.columns:
        made[column] = np.zeros(column.count(limits), column.dtype)
        if column.name in columns:
            given = np.asarray(columns[column.name])
            given = given if given.dtype.names else given.astype(column.dtype)
            made[column][: len(given)] = given
    assert algorithm.generated is not None
    list(algorithm.generated.evaluate(made, limits.events))
    return {column.name: content for column, content in made.items()}


EVALUATORS = {
    "numpy": _numpy,
    "compiler": _by_kernel(_compiled),
    "blocks of 1": _blocks(1),
    "blocks of 32": _blocks(32),
    "blocks of 100 backward": _blocks(100, backward=True),
    "ptx": _by_kernel(_ptx),
}
