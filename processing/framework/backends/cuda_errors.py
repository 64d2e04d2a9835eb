"""CUDA errors as BackendError: the failed action, and whether the process can continue."""

from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

from hltnode.processing.framework.backends.interface import BackendError, DeviceLostError

OUT_OF_MEMORY = 2
NOT_READY = 600

LOST = frozenset({214, 220, 226, 700, 702, 709, 710, 714, 715, 716, 717, 718, 719, 721, 999})
"""Status codes after which every call of the process fails. In numerical order: uncorrectable ECC and NVLink errors, a
contained error; illegal address, launch timeout, context destroyed, assertion, hardware stack error, illegal
instruction, misaligned address, invalid address space, invalid program counter, launch failure, leak of tensor memory;
unknown. CUDA Runtime API, "Data types used by CUDA Runtime", enum cudaError: "the process must be terminated and
relaunched". Errors of the driver API have the same numbers."""


@contextmanager
def cuda_calls(cupy: Any, action: str) -> Iterator[None]:
    """CUDA calls for `action` ("copy a batch"); their errors become BackendError."""
    try:
        yield
    except (cupy.cuda.runtime.CUDARuntimeError, cupy.cuda.driver.CUDADriverError) as error:
        raise _backend_error(cupy, action, error) from error


def _backend_error(cupy: Any, action: str, error: Any) -> BackendError:
    """The error to raise for an error of CuPy; an out-of-memory error gives the free memory."""
    message = f"CUDA failed to {action}: {error}"
    if error.status in LOST:
        return DeviceLostError(message)
    if error.status == OUT_OF_MEMORY:
        message += f"; {_free_memory(cupy)}"
    return BackendError(message)


def size_of(nbytes: int) -> str:
    """A number of bytes for messages."""
    return f"{nbytes / 2**20:.1f} MiB"


def _free_memory(cupy: Any) -> str:
    runtime = cupy.cuda.runtime
    try:
        free, total = runtime.memGetInfo()
    except runtime.CUDARuntimeError as error:
        # There is not even memory for a context.
        return f"the free memory is unknown: {error}"
    return f"{size_of(free)} of the device's {size_of(total)} are free"
