"""One GPU of a process, usable from any thread."""

from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from typing import Any

from hltnode.processing.framework.backends.cuda_errors import cuda_calls


@dataclass(frozen=True, slots=True)
class CudaDevice:
    """The GPU with this CUDA ordinal among the GPUs in CUDA_VISIBLE_DEVICES."""

    cupy: Any
    ordinal: int

    @contextmanager
    def calls(self, action: str) -> Iterator[Any]:
        """CUDA calls for `action` ("copy a batch") on this GPU; yields CuPy. Their errors become BackendError.

        The current GPU is a property of the thread, and a thread starts with the first GPU. So every call of the back
        end runs in this context. The thread keeps the GPU afterwards.
        """
        with cuda_calls(self.cupy, action):
            self.cupy.cuda.runtime.setDevice(self.ordinal)
            yield self.cupy

    @property
    def name(self) -> str:
        """Product name of the GPU."""
        with self.calls("query the name of the GPU"):
            return name_of(self.cupy, self.ordinal)


def name_of(cupy: Any, ordinal: int) -> str:
    """The name of any GPU."""
    name: bytes = cupy.cuda.runtime.getDeviceProperties(ordinal)["name"]
    return name.decode()
