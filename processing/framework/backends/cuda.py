"""The CUDA back end: runs the kernels of a chain on a GPU through the thin CUDA wrappers of CuPy.

Each slot has one stream and one captured graph. Copies go directly between pinned memory and preallocated device
memory. CuPy hides some errors: Event.done returns "not done" for every error, so events are queried through the
runtime. The constructor checks the installation (cuda_installation.py). Any thread may use the back end
(cuda_device.py).
"""

import queue
import threading
import weakref
from collections.abc import Callable, Mapping, Sequence
from contextlib import suppress
from itertools import pairwise
from typing import Any

import numpy as np
from numpy.typing import NDArray

from hltnode.processing.framework.backends._executor import DirectBatch, TableWriter
from hltnode.processing.framework.backends.cuda_device import CudaDevice
from hltnode.processing.framework.backends.cuda_errors import NOT_READY, OUT_OF_MEMORY, cuda_calls, size_of
from hltnode.processing.framework.backends.cuda_installation import check_launch, checked_device
from hltnode.processing.framework.backends.cuda_kernels import cached_kernels
from hltnode.processing.framework.backends.host_memory import available_bytes
from hltnode.processing.framework.backends.interface import (
    BackendError,
    DeviceLostError,
    DeviceMemory,
    EventTables,
    Launch,
    Mirror,
    Timings,
)
from hltnode.processing.framework.backends.kernel_cache import cache_folder
from hltnode.processing.framework.kernel_sources import KernelSources


class EndWatch:
    """A thread that sleeps until the last event of a stream completes; started with the first watched batch.

    A host function in the stream would not work: after a device error the driver calls none.
    """

    def __init__(self, device: CudaDevice, event: Any) -> None:
        self._device = device
        self._event = event
        self._batches: queue.SimpleQueue[Callable[[], None] | None] = queue.SimpleQueue()
        self._thread: threading.Thread | None = None

    def watch(self, ended: Callable[[], None]) -> None:
        """Call `ended` when the batch that was started last ends."""
        if self._thread is None:
            # A daemon thread: a hanging device must not keep the process from ending.
            self._thread = threading.Thread(target=self._run, name="hltnode-cuda-end", daemon=True)
            self._thread.start()
        self._batches.put(ended)

    def close(self) -> None:
        """End the thread after its current wait."""
        self._batches.put(None)

    def _run(self) -> None:
        while (ended := self._batches.get()) is not None:
            # `poll` reports the error.
            with suppress(BackendError), self._device.calls("wait for a batch"):
                self._event.synchronize()
            ended()


class CudaQueue:
    """One stream: H2D copies, the graph of all kernels, D2H copies.

    With `profile` the kernels are launched one by one, each followed by an event.
    """

    def __init__(
        self, device: CudaDevice, kernels: Mapping[str, Any], launches: Sequence[Launch], block_size: int | None
    ) -> None:
        self._device = device
        self._kernels = [(kernels[launch.kernel], launch, block_size or launch.block_size) for launch in launches]
        with device.calls("make a stream and its events") as cupy:
            self._stream = cupy.cuda.Stream(non_blocking=True)
            # A thread waits for the last event; it must sleep, not spin.
            self._events = [*(cupy.cuda.Event() for _ in range(3)), cupy.cuda.Event(block=True)]
        self._end_watch = EndWatch(device, self._events[3])
        self._kernel_events: list[Any] = []
        """Events after each kernel of a profiled batch."""
        self._kernel_seconds: dict[str, float] = {}
        self._timings = Timings(0.0, 0.0, 0.0)
        self._running = False
        self._steps_before = 0
        self._steps = 0
        self.profile = False
        with device.calls(f"make a graph of {len(launches)} kernels") as cupy:
            self._stream.begin_capture()
            for kernel, launch, block in self._kernels:
                # A capture may contain only the launches.
                with cuda_calls(cupy, f"launch {launch.kernel} with {launch.max_blocks} blocks of {block} threads"):
                    self._launch(cupy, kernel, launch, block)
            self._graph = self._stream.end_capture()
            self._graph.upload(self._stream)

    def _launch(self, cupy: Any, kernel: Any, launch: Launch, block: int) -> None:
        """Enqueue a kernel in the stream. The driver copies its parameters, one struct."""
        arguments = np.array([launch.parameters.ctypes.data], dtype=np.uint64)
        grid = launch.max_blocks
        cupy.cuda.driver.launchKernel(
            kernel.ptr, grid, 1, 1, block, 1, 1, 0, self._stream.ptr, arguments.ctypes.data, 0
        )

    def submit(
        self,
        uploads: Sequence[tuple[Mirror, int]],
        downloads: Sequence[tuple[Mirror, int]],
        ended: Callable[[], None] | None = None,
    ) -> None:
        if self._running:
            raise BackendError("a batch is still running in this queue")
        self._steps_before += self._steps
        self._steps = 0
        try:
            with self._device.calls("start a batch") as cupy:
                self._enqueue(cupy, uploads, downloads)
        except DeviceLostError:
            raise
        except BackendError:
            # A part of the batch may already run and use the buffers.
            with self._device.calls("finish the started part of a batch"):
                self._stream.synchronize()
            raise
        self._running = True
        if ended is not None:
            self._end_watch.watch(ended)

    def _enqueue(
        self, cupy: Any, uploads: Sequence[tuple[Mirror, int]], downloads: Sequence[tuple[Mirror, int]]
    ) -> None:
        runtime = cupy.cuda.runtime
        self._events[0].record(self._stream)
        for mirror, nbytes in uploads:
            runtime.memcpyAsync(
                mirror.device.pointer, mirror.host.ctypes.data, nbytes, runtime.memcpyHostToDevice, self._stream.ptr
            )
        self._events[1].record(self._stream)
        self._kernel_events = [cupy.cuda.Event() for _ in self._kernels] if self.profile else []
        if self.profile:
            for (kernel, launch, block), event in zip(self._kernels, self._kernel_events, strict=True):
                self._launch(cupy, kernel, launch, block)
                event.record(self._stream)
        else:
            self._graph.launch(self._stream)
        self._events[2].record(self._stream)
        for mirror, nbytes in downloads:
            runtime.memcpyAsync(
                mirror.host.ctypes.data, mirror.device.pointer, nbytes, runtime.memcpyDeviceToHost, self._stream.ptr
            )
        self._events[3].record(self._stream)

    def compute_directly(self) -> bool:
        return False

    def direct_batch(self, tables: TableWriter, input_data: NDArray[np.uint8]) -> DirectBatch | None:  # noqa: ARG002
        return None

    def compute_here(self) -> bool:
        return False

    def poll(self) -> bool:
        if not self._running:
            return True
        try:
            with self._device.calls("compute a batch") as cupy:
                # The events complete in this order.
                while self._steps < len(self._events):
                    status = cupy.cuda.runtime.eventQuery(self._events[self._steps].ptr)
                    if status == NOT_READY:
                        return False
                    if status != 0:
                        raise cupy.cuda.runtime.CUDARuntimeError(status)
                    self._steps += 1
        except BackendError:
            self._running = False
            raise
        self.wait()
        return True

    def wait(self) -> None:
        if not self._running:
            return
        self._running = False
        with self._device.calls("compute a batch") as cupy:
            self._events[3].synchronize()
            h2d, kernels, d2h = _between(cupy, self._events)
            for (_, launch, _), seconds in zip(
                self._kernels, _between(cupy, [self._events[1], *self._kernel_events]), strict=False
            ):
                self._kernel_seconds[launch.kernel] = self._kernel_seconds.get(launch.kernel, 0.0) + seconds
        self._steps = len(self._events)
        self._timings = Timings(h2d, kernels, d2h)

    @property
    def timings(self) -> Timings:
        return self._timings

    def seconds_since(self, event: Any) -> tuple[float, float, float, float]:
        """Times of the last batch after a CUDA event in s: start, on the device, computed, copied back."""
        with self._device.calls("time a batch") as cupy:
            begin, on_device, computed, back = (cupy.cuda.get_elapsed_time(event, own) * 1e-3 for own in self._events)
        return begin, on_device, computed, back

    def close(self) -> None:
        """End the thread that waits for batches."""
        self._end_watch.close()

    def take_profile(self) -> dict[str, float]:
        """Seconds of each kernel since the last call, for batches with `profile`."""
        seconds, self._kernel_seconds = self._kernel_seconds, {}
        return seconds

    @property
    def progress(self) -> int:
        """Number of completed events of the stream: start, copy, kernels, copy back.

        The kernels of a batch are one step, because a graph reports no progress; the densest batch takes a GPU about a
        second.
        """
        return self._steps_before + self._steps


def _between(cupy: Any, events: Sequence[Any]) -> list[float]:
    """Seconds from each event to the next one."""
    return [cupy.cuda.get_elapsed_time(one, other) * 1e-3 for one, other in pairwise(events)]


class _Allocated:
    """Owner of device memory."""

    def __init__(self, memory: Any) -> None:
        self.memory = memory


class CudaBackend:
    """Kernels on one GPU: `device` is its CUDA ordinal among the GPUs in CUDA_VISIBLE_DEVICES, or MOST_FREE.

    memory_bound: bytes of device memory that this back end may allocate, 0 for all that are free; the CUDA context and
    the code of the kernels, which the driver allocates, do not count.

    Raises BackendError: with the packages to install if GPU, driver, CuPy and NVRTC do not match; with the available
    GPUs if `device` is not one of them; with the compiler log if the kernels do not compile.
    """

    name = "cuda"
    threads = 1
    fuses_events = False

    def __init__(
        self, kernels: KernelSources, *, device: int = 0, block_size: int | None = None, memory_bound: int = 0
    ) -> None:
        self.device, self._architecture = checked_device(device)
        self._memory_bound = memory_bound
        self._allocated = 0
        self._block_size = block_size
        self._kernels = kernels
        self._module = self._load(None)
        self._queues: list[CudaQueue] = []
        self._generated: dict[str, Any] = {}
        """Modules of generated kernels by their source."""

    def _load(self, source: str | None) -> Any:
        """The module with the kernels of the chain, or with a generated source."""
        nvrtc = self.device.cupy.cuda.nvrtc
        cubin = cached_kernels(nvrtc, self._kernels, self._architecture, cache_folder(), source)
        with self.device.calls(f"load the kernels, {size_of(len(cubin))} for sm_{self._architecture}") as cupy:
            module = cupy.cuda.Module()
            module.load(cubin)
        return module

    def compile(self, kernel: str, source: str) -> bool:  # noqa: ARG002
        if source not in self._generated:
            self._generated[source] = self._load(source)
        return True

    @property
    def description(self) -> str:
        return f"GPU {self.device.ordinal}, {self.device.name}"

    @property
    def gpu(self) -> int:
        return self.device.ordinal

    def free_bytes(self) -> int:
        with self.device.calls("query the free memory") as cupy:
            free, _total = cupy.cuda.runtime.memGetInfo()
        return int(min(free, self._memory_bound - self._allocated) if self._memory_bound else free)

    def allocate_mirror(self, nbytes: int) -> Mirror:
        return Mirror(self._pinned(nbytes), self.allocate_device(nbytes))

    def allocate_mapped(self, nbytes: int) -> Mirror:
        # With unified addressing, which every supported GPU has, pinned memory has the same address on the device
        # (CUDA C++ Programming Guide, "Page-Locked Host Memory" and "Unified Virtual Address Space").
        host = self._pinned(nbytes)
        return Mirror(host, DeviceMemory(host.ctypes.data, nbytes, host))

    def _pinned(self, nbytes: int) -> NDArray[np.uint8]:
        action = f"allocate {size_of(nbytes)} of pinned memory"
        with self.device.calls(action) as cupy:
            try:
                # Not from the pinned memory pool: it rounds up to a power of two.
                pinned = cupy.cuda.PinnedMemoryPointer(cupy.cuda.PinnedMemory(nbytes), 0)
            except cupy.cuda.runtime.CUDARuntimeError as error:
                if error.status != OUT_OF_MEMORY:
                    raise
                raise BackendError(
                    f"CUDA failed to {action}: {error}; {size_of(available_bytes())} of the host's memory are free"
                ) from error
        host = np.frombuffer(pinned, dtype=np.uint8, count=nbytes)
        host[:] = 0
        return host

    def allocate_device(self, nbytes: int) -> DeviceMemory:
        if self._memory_bound and self._allocated + nbytes > self._memory_bound:
            raise BackendError(
                f"{size_of(nbytes)} of device memory exceed the bound of this node: it has allocated "
                f"{size_of(self._allocated)} of {size_of(self._memory_bound)} (pipeline.device_memory_bytes)"
            )
        with self.device.calls(f"allocate {size_of(nbytes)} of device memory") as cupy:
            memory = cupy.cuda.Memory(nbytes)
            if nbytes:
                # The call returns before the memory is cleared, and the streams of the slots do not wait for it.
                cupy.cuda.runtime.memset(memory.ptr, 0, nbytes)
                cupy.cuda.runtime.deviceSynchronize()
        owner = _Allocated(memory)
        self._allocated += nbytes
        weakref.finalize(owner, self._give_back, nbytes).atexit = False
        return DeviceMemory(memory.ptr, nbytes, owner)

    def _give_back(self, nbytes: int) -> None:
        self._allocated -= nbytes

    def write(self, memory: DeviceMemory, content: NDArray[np.uint8]) -> None:
        source = np.ascontiguousarray(content)
        with self.device.calls(f"write {size_of(source.nbytes)} of constants") as cupy:
            runtime = cupy.cuda.runtime
            runtime.memcpy(memory.pointer, source.ctypes.data, source.nbytes, runtime.memcpyHostToDevice)
            # The copy of pageable memory may continue after the call returns.
            runtime.deviceSynchronize()

    def read(self, memory: DeviceMemory, nbytes: int) -> NDArray[np.uint8]:
        content = np.empty(nbytes, dtype=np.uint8)
        with self.device.calls(f"read {size_of(nbytes)}") as cupy:
            runtime = cupy.cuda.runtime
            # A copy does not wait for non-blocking streams.
            runtime.deviceSynchronize()
            runtime.memcpy(content.ctypes.data, memory.pointer, nbytes, runtime.memcpyDeviceToHost)
        return content

    def create_queue(
        self,
        launches: Sequence[Launch],
        batch_header: DeviceMemory,  # noqa: ARG002
        thread_bytes: int,  # noqa: ARG002
        tables: EventTables | None,  # noqa: ARG002
        *,
        direct: bool = False,  # noqa: ARG002
    ) -> CudaQueue:
        kernels = {}
        for launch in launches:
            module = self._module if launch.generated is None else self._generated[launch.generated.source]
            with self.device.calls(f"find the kernel {launch.kernel}"):
                kernels[launch.kernel] = module.get_function(launch.kernel)
            check_launch(self.device, launch.kernel, kernels[launch.kernel], self._block_size or launch.block_size)
        self._queues.append(CudaQueue(self.device, kernels, launches, self._block_size))
        return self._queues[-1]

    def close(self) -> None:
        for each in self._queues:
            each.close()
        # A lost device has no work to wait for, and the owner of a lost batch has its error.
        with suppress(DeviceLostError), self.device.calls("finish") as cupy:
            cupy.cuda.runtime.deviceSynchronize()
