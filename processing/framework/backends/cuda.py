"""The CUDA back end: the kernels of a chain on a GPU, driven through the parts of CuPy that wrap CUDA one to one.

One stream and one captured graph per slot. Copies go straight between pinned memory and preallocated device memory.
CuPy hides errors in some places: Event.done takes every one for "not done yet", so events are asked through the
runtime. What the back end needs of the installation is checked when it is made (cuda_installation.py).
"""

from collections.abc import Mapping, Sequence
from contextlib import suppress
from typing import Any

import numpy as np
from numpy.typing import NDArray

from hltnode.processing.framework.backends.cuda_errors import (
    NOT_READY,
    OUT_OF_MEMORY,
    cuda_calls,
    cuda_error,
    size_of,
)
from hltnode.processing.framework.backends.cuda_installation import check_installation, check_launch, load_cupy
from hltnode.processing.framework.backends.cuda_kernels import cache_folder, cached_kernels
from hltnode.processing.framework.backends.host_memory import available_bytes
from hltnode.processing.framework.backends.interface import (
    BackendError,
    DeviceLostError,
    DeviceMemory,
    Launch,
    Mirror,
    Timings,
)
from hltnode.processing.framework.kernel_sources import KernelSources


class CudaQueue:
    """One stream: H2D copies, the graph of all kernels, D2H copies."""

    def __init__(
        self, cupy: Any, kernels: Mapping[str, Any], launches: Sequence[Launch], block_size: int | None
    ) -> None:
        self._cupy = cupy
        with cuda_calls(cupy, "make a stream and its events"):
            self._stream = cupy.cuda.Stream(non_blocking=True)
            self._events = [cupy.cuda.Event() for _ in range(4)]
        self._timings = Timings(0.0, 0.0, 0.0)
        self._running = False
        self._steps_before = 0
        self._steps = 0
        with cuda_calls(cupy, f"make a graph of {len(launches)} kernels"):
            self._stream.begin_capture()
            for launch in launches:
                block = block_size or launch.block_size
                with cuda_calls(cupy, f"launch {launch.kernel} with {launch.max_blocks} blocks of {block} threads"):
                    self._launch(kernels[launch.kernel], launch, block)
            self._graph = self._stream.end_capture()
            self._graph.upload(self._stream)

    def _launch(self, kernel: Any, launch: Launch, block: int) -> None:
        """Put a kernel into the stream. The driver copies its parameters, which are one struct."""
        arguments = np.array([launch.parameters.ctypes.data], dtype=np.uint64)
        grid = launch.max_blocks
        self._cupy.cuda.driver.launchKernel(
            kernel.ptr, grid, 1, 1, block, 1, 1, 0, self._stream.ptr, arguments.ctypes.data, 0
        )

    def submit(self, uploads: Sequence[tuple[Mirror, int]], downloads: Sequence[tuple[Mirror, int]]) -> None:
        if self._running:
            raise BackendError("a batch is still running in this queue")
        self._steps_before += self._steps
        self._steps = 0
        try:
            with cuda_calls(self._cupy, "start a batch"):
                self._enqueue(uploads, downloads)
        except DeviceLostError:
            raise
        except BackendError:
            # A part of the batch may be on its way and use the buffers.
            with cuda_calls(self._cupy, "finish what was started of a batch"):
                self._stream.synchronize()
            raise
        self._running = True

    def _enqueue(self, uploads: Sequence[tuple[Mirror, int]], downloads: Sequence[tuple[Mirror, int]]) -> None:
        runtime = self._cupy.cuda.runtime
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

    def poll(self) -> bool:
        if not self._running:
            return True
        runtime = self._cupy.cuda.runtime
        # The events are passed in this order.
        while self._steps < len(self._events):
            status = runtime.eventQuery(self._events[self._steps].ptr)
            if status == NOT_READY:
                return False
            if status != 0:
                self._running = False
                raise cuda_error(self._cupy, "compute a batch", runtime.CUDARuntimeError(status))
            self._steps += 1
        self.wait()
        return True

    def wait(self) -> None:
        if not self._running:
            return
        self._running = False
        with cuda_calls(self._cupy, "compute a batch"):
            self._events[3].synchronize()
            elapsed = self._cupy.cuda.get_elapsed_time
            h2d, kernels, d2h = (elapsed(self._events[i], self._events[i + 1]) * 1e-3 for i in range(3))
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
    """Kernels on the current CUDA device.

    Raises BackendError with what to install where GPU, driver, CuPy and NVRTC do not go together, and with the log of
    the compiler where it refuses the kernels.
    """

    name = "cuda"
    threads = 1
    fuses_events = False

    def __init__(self, kernels: KernelSources, *, block_size: int | None = None) -> None:
        self._cupy = cupy = load_cupy()
        architecture = check_installation(cupy)
        self._block_size = block_size
        cubin = cached_kernels(cupy.cuda.nvrtc, kernels, architecture, cache_folder())
        self._module = cupy.cuda.Module()
        with cuda_calls(cupy, f"load the kernels, {size_of(len(cubin))} for sm_{architecture}"):
            self._module.load(cubin)

    def free_bytes(self) -> int:
        with cuda_calls(self._cupy, "ask for free memory"):
            free, _total = self._cupy.cuda.runtime.memGetInfo()
        return int(free)

    def allocate_mirror(self, nbytes: int) -> Mirror:
        cuda = self._cupy.cuda
        try:
            # Not from the pinned pool, which rounds up to a power of two.
            pinned = cuda.PinnedMemoryPointer(cuda.PinnedMemory(nbytes), 0)
        except cuda.runtime.CUDARuntimeError as error:
            if error.status != OUT_OF_MEMORY:
                raise cuda_error(self._cupy, f"allocate {size_of(nbytes)} of pinned memory", error) from error
            raise BackendError(
                f"CUDA failed to allocate {size_of(nbytes)} of pinned memory: {error}; {size_of(available_bytes())} of "
                "the host's memory are free"
            ) from error
        host = np.frombuffer(pinned, dtype=np.uint8, count=nbytes)
        host[:] = 0
        return Mirror(host, self.allocate_device(nbytes))

    def allocate_device(self, nbytes: int) -> DeviceMemory:
        runtime = self._cupy.cuda.runtime
        with cuda_calls(self._cupy, f"allocate {size_of(nbytes)} of device memory"):
            memory = self._cupy.cuda.Memory(nbytes)
            if nbytes:
                # It returns before it is done, and the streams of the slots do not wait for it.
                runtime.memset(memory.ptr, 0, nbytes)
                runtime.deviceSynchronize()
        return DeviceMemory(memory.ptr, nbytes, memory)

    def write(self, memory: DeviceMemory, content: NDArray[np.uint8]) -> None:
        runtime = self._cupy.cuda.runtime
        source = np.ascontiguousarray(content)
        with cuda_calls(self._cupy, f"write {size_of(source.nbytes)} of constants"):
            runtime.memcpy(memory.pointer, source.ctypes.data, source.nbytes, runtime.memcpyHostToDevice)
            # The copy of pageable memory may go on after its call has returned.
            runtime.deviceSynchronize()

    def read(self, memory: DeviceMemory, nbytes: int) -> NDArray[np.uint8]:
        runtime = self._cupy.cuda.runtime
        content = np.empty(nbytes, dtype=np.uint8)
        with cuda_calls(self._cupy, f"read {size_of(nbytes)}"):
            # Streams that do not block are not awaited by a copy.
            runtime.deviceSynchronize()
            runtime.memcpy(content.ctypes.data, memory.pointer, nbytes, runtime.memcpyDeviceToHost)
        return content

    def create_queue(self, launches: Sequence[Launch], batch_header: DeviceMemory, thread_bytes: int) -> CudaQueue:  # noqa: ARG002
        kernels = {}
        for launch in launches:
            with cuda_calls(self._cupy, f"find the kernel {launch.kernel}"):
                kernels[launch.kernel] = self._module.get_function(launch.kernel)
            check_launch(self._cupy, launch.kernel, kernels[launch.kernel], self._block_size or launch.block_size)
        return CudaQueue(self._cupy, kernels, launches, self._block_size)

    def close(self) -> None:
        # A lost device has nothing to wait for, and who lost a batch by it knows.
        with suppress(DeviceLostError), cuda_calls(self._cupy, "finish"):
            self._cupy.cuda.runtime.deviceSynchronize()
