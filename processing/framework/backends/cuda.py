"""The CUDA back end: the kernels of a chain compiled by NVRTC through CuPy.

One stream and one captured graph per slot. Copies go straight between pinned memory and preallocated device memory
with memcpyAsync: cupy.asarray would copy a pinned array to a temporary first.
"""

import importlib.util
from collections.abc import Sequence
from typing import Any

import numpy as np
from numpy.typing import NDArray

from hltnode.processing.framework.backends.interface import BackendError, DeviceMemory, Launch, Mirror, Timings
from hltnode.processing.framework.kernel_sources import KernelSources

COMPILE_OPTIONS = ("--std=c++17", "--fmad=false", "-default-device")
"""Without contraction to FMA the GPU rounds as the CPU back end does, so both decide alike."""


def translation_unit(kernels: KernelSources) -> str:
    """What NVRTC compiles. The digest of all kernel sources makes CuPy's disk cache notice a change in an include."""
    return f'// {kernels.digest()}\n#include "{kernels.header}"\n'


def compile_options(kernels: KernelSources) -> tuple[str, ...]:
    """COMPILE_OPTIONS, and where includes start."""
    return (*COMPILE_OPTIONS, *(f"-I{folder}" for folder in kernels.folders))


def is_available() -> bool:
    """Whether CuPy is installed and sees a GPU."""
    if importlib.util.find_spec("cupy") is None:
        return False
    import cupy

    return bool(cupy.cuda.is_available())


class CudaQueue:
    """One stream: H2D copies, the graph of all kernels, D2H copies."""

    def __init__(self, cupy: Any, kernels: dict[str, Any], launches: Sequence[Launch], block_size: int | None) -> None:
        self._cupy = cupy
        self._stream = cupy.cuda.Stream(non_blocking=True)
        self._events = [cupy.cuda.Event() for _ in range(4)]
        self._graph: Any = None
        self._timings = Timings(0.0, 0.0, 0.0)
        self._running = False
        self._steps_before = 0
        self._steps = 0
        with self._stream:
            self._stream.begin_capture()
            for launch in launches:
                block = block_size or launch.block_size
                kernels[launch.kernel]((launch.max_blocks,), (block,), (np.uint64(launch.parameters.pointer),))
            self._graph = self._stream.end_capture()
        self._graph.upload(self._stream)

    def submit(self, uploads: Sequence[tuple[Mirror, int]], downloads: Sequence[tuple[Mirror, int]]) -> None:
        if self._running:
            raise BackendError("a batch is still running in this queue")
        runtime = self._cupy.cuda.runtime
        try:
            self._events[0].record(self._stream)
            for mirror, nbytes in uploads:
                runtime.memcpyAsync(
                    mirror.device.pointer, mirror.host.ctypes.data, nbytes, runtime.memcpyHostToDevice, self._stream.ptr
                )
            self._events[1].record(self._stream)
            self._graph.launch(self._stream)
            self._events[2].record(self._stream)
            for mirror, nbytes in downloads:
                runtime.memcpyAsync(
                    mirror.host.ctypes.data, mirror.device.pointer, nbytes, runtime.memcpyDeviceToHost, self._stream.ptr
                )
            self._events[3].record(self._stream)
        except runtime.CUDARuntimeError as error:
            raise BackendError(f"CUDA refused a batch: {error}") from error
        self._running = True
        self._steps_before += self._steps
        self._steps = 0

    def poll(self) -> bool:
        if not self._running:
            return True
        try:
            # The events are passed in this order.
            while self._steps < len(self._events) and self._events[self._steps].done:
                self._steps += 1
            if self._steps < len(self._events):
                return False
        except self._cupy.cuda.runtime.CUDARuntimeError as error:
            self._running = False
            raise BackendError(f"CUDA failed on a batch: {error}") from error
        self.wait()
        return True

    def wait(self) -> None:
        if not self._running:
            return
        self._running = False
        try:
            self._events[3].synchronize()
            elapsed = self._cupy.cuda.get_elapsed_time
            h2d, kernels, d2h = (elapsed(self._events[i], self._events[i + 1]) * 1e-3 for i in range(3))
        except self._cupy.cuda.runtime.CUDARuntimeError as error:
            raise BackendError(f"CUDA failed on a batch: {error}") from error
        self._steps = len(self._events)
        self._timings = Timings(h2d, kernels, d2h)

    @property
    def timings(self) -> Timings:
        return self._timings

    @property
    def progress(self) -> int:
        """Events of the stream that are passed: start, copy, kernels, copy back. The kernels of a batch are one step,
        since a graph reports nothing from inside; the densest batch takes a GPU about a second."""
        return self._steps_before + self._steps


class CudaBackend:
    """Kernels on the current CUDA device."""

    name = "cuda"
    threads = 1
    fuses_events = False

    def __init__(self, kernels: KernelSources, *, block_size: int | None = None) -> None:
        if importlib.util.find_spec("cupy") is None:
            raise BackendError("the CUDA back end needs CuPy: pip install 'hltnode[cuda13]' or 'hltnode[cuda12]'")
        import cupy

        if not cupy.cuda.is_available():
            raise BackendError("CuPy is installed but finds no CUDA device: check nvidia-smi and the driver")
        self._cupy = cupy
        self._block_size = block_size
        self._module = cupy.RawModule(code=translation_unit(kernels), options=compile_options(kernels), backend="nvrtc")

    def free_bytes(self) -> int:
        free, _total = self._cupy.cuda.runtime.memGetInfo()
        # What CuPy has freed stays in its pool.
        return int(free) + int(self._cupy.get_default_memory_pool().free_bytes())

    def allocate_mirror(self, nbytes: int) -> Mirror:
        # Not from the pinned pool, which rounds up to a power of two.
        pinned = self._cupy.cuda.PinnedMemoryPointer(self._cupy.cuda.PinnedMemory(nbytes), 0)
        host = np.frombuffer(pinned, dtype=np.uint8, count=nbytes)
        host[:] = 0
        return Mirror(host, self.allocate_device(nbytes))

    def allocate_device(self, nbytes: int) -> DeviceMemory:
        array = self._cupy.zeros(nbytes, dtype=self._cupy.uint8)
        return DeviceMemory(array.data.ptr, nbytes, array)

    def write(self, memory: DeviceMemory, content: NDArray[np.uint8]) -> None:
        memory.owner[: content.nbytes].set(content)

    def read(self, memory: DeviceMemory, nbytes: int) -> NDArray[np.uint8]:
        content: NDArray[np.uint8] = memory.owner[:nbytes].get()
        return content

    def create_queue(self, launches: Sequence[Launch], batch_header: DeviceMemory, thread_bytes: int) -> CudaQueue:  # noqa: ARG002
        kernels = {launch.kernel: self._module.get_function(launch.kernel) for launch in launches}
        self._cupy.cuda.runtime.deviceSynchronize()
        return CudaQueue(self._cupy, kernels, launches, self._block_size)

    def close(self) -> None:
        self._cupy.cuda.runtime.deviceSynchronize()
