"""One GPU of a process, for any of its threads."""

from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from typing import Any

from hltnode.processing.framework.backends.cuda_errors import cuda_calls


@dataclass(frozen=True, slots=True)
class CudaDevice:
    """The GPU of this ordinal, as CUDA counts those that CUDA_VISIBLE_DEVICES leaves."""

    cupy: Any
    ordinal: int

    @contextmanager
    def calls(self, action: str) -> Iterator[Any]:
        """Calls of CUDA that serve `action` ("copy a batch"), on this GPU; yields CuPy. Their errors become
        BackendError.

        Which GPU a call is for is a property of the thread, and a thread starts with the first GPU: every call of the
        back end is made in here. The thread keeps the GPU afterwards.
        """
        with cuda_calls(self.cupy, action):
            self.cupy.cuda.runtime.setDevice(self.ordinal)
            yield self.cupy

    @property
    def name(self) -> str:
        """As its maker calls it."""
        with self.calls("ask for the name of the GPU"):
            return name_of(self.cupy, self.ordinal)


def name_of(cupy: Any, ordinal: int) -> str:
    """The name of any GPU."""
    name: bytes = cupy.cuda.runtime.getDeviceProperties(ordinal)["name"]
    return name.decode()
