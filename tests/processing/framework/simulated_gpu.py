"""GPUs without hardware: the worst behaviour of streams, events and memory that CUDA allows.

- A stream does its work in order and as late as possible: when the host waits for it, or one step when the host polls
  an event. `order` selects the stream that takes this step, so slots overlap in every way.
- The default stream does not wait for non-blocking streams, and they do not wait for it.
- A copy from pinned memory reads it at execution, not at the call. A copy to pinned memory leaves poison there until it
  is complete.
- Memory is poisoned when it is allocated and when it is freed.
- Streams, events, kernels and memory belong to one GPU; another GPU refuses them.
- Errors on demand: `refuse` lets a call fail, `fault` a kernel. After a fault every call fails with the same error.

Kernels run in the block emulator, with the whole grid of the launch.
"""

from __future__ import annotations

import ctypes
import itertools
import random
import threading
from collections import Counter, deque
from collections.abc import Callable
from dataclasses import dataclass, field
from enum import Enum, auto
from functools import partial

import numpy as np
from numpy.typing import NDArray

from hltnode.processing.framework.kernel_sources import KernelSources
from tests.processing.framework.kernel_runner import emulate, parameter_bytes

POISON = 0xA5
ALIGNMENT = 256

OUT_OF_MEMORY, NO_DEVICE, NOT_READY, ILLEGAL_ADDRESS = 2, 100, 600, 700
STREAM_IS_CAPTURING, INVALID_VALUE, INVALID_DEVICE, INVALID_HANDLE = 900, 1, 101, 400
NAMES = {
    INVALID_VALUE: "cudaErrorInvalidValue: invalid argument",
    OUT_OF_MEMORY: "cudaErrorMemoryAllocation: out of memory",
    NO_DEVICE: "cudaErrorNoDevice: no CUDA-capable device is detected",
    INVALID_DEVICE: "cudaErrorInvalidDevice: invalid device ordinal",
    INVALID_HANDLE: "cudaErrorInvalidResourceHandle: invalid resource handle",
    NOT_READY: "cudaErrorNotReady: device not ready",
    ILLEGAL_ADDRESS: "cudaErrorIllegalAddress: an illegal memory access was encountered",
    STREAM_IS_CAPTURING: "cudaErrorStreamCaptureUnsupported: operation not permitted when stream is capturing",
}


class CudaError(RuntimeError):
    """An error of the runtime or of the driver."""

    def __init__(self, status: int) -> None:
        super().__init__(NAMES.get(status, f"cudaError{status}"))
        self.status = status


class Order(Enum):
    """Selects the stream that works when the host polls an event."""

    ASKED = auto()
    """The stream of the event; the others wait."""
    OTHERS = auto()
    """Another stream, as long as any has work."""
    RANDOM = auto()


@dataclass(eq=False)
class SimulatedStream:
    """Queued work; while a graph is captured, `captured` collects the launches instead."""

    ptr: int
    work: deque[Callable[[], None]] = field(default_factory=deque)
    captured: list[KernelLaunch] | None = None


@dataclass(frozen=True, eq=False)
class KernelLaunch:
    """One kernel, with a copy of its parameters."""

    kernels: KernelSources
    kernel: str
    blocks: int
    block_size: int
    parameters: NDArray[np.uint8]


@dataclass(eq=False)
class SimulatedEvent:
    """`passed`: step of the device at which the stream reached the event; None before."""

    ptr: int
    stream: SimulatedStream | None = None
    passed: int | None = None


_handles = itertools.count(0x1001)
"""Handles of streams and events; a GPU does not know the handles of another GPU."""


class SimulatedGpu:
    """One device, with the kernels of one chain.

    memory: size in bytes. kernel_limits: maximum threads in a block of a kernel, 1024 by default.
    """

    def __init__(
        self,
        kernels: KernelSources,
        *,
        order: Order = Order.ASKED,
        seed: int = 1,
        memory: int = 1 << 30,
        name: str = "Simulated GPU",
        capability: str = "90",
    ) -> None:
        self.kernels = kernels
        self.name = name
        self.capability = capability
        self.order = order
        self.memory = memory
        self.pinned_memory = memory
        self.backward = False
        self.kernel_limits: dict[str, int] = {}
        self.lost = 0
        self.calls: Counter[str] = Counter()
        self.done: list[tuple[int, str]] = []
        """(stream, work) in the order of execution."""
        self._random = random.Random(seed)
        self._refused: dict[str, tuple[int, int]] = {}
        self._faults: dict[str, int] = {}
        self._default = SimulatedStream(0)
        self._streams = {0: self._default}
        self._events: dict[int, SimulatedEvent] = {}
        self._blocks: dict[int, NDArray[np.uint8]] = {}
        # Several threads call; the GPU executes one call at a time.
        self._lock = threading.RLock()
        self._device_bytes: dict[int, int] = {}
        self._pinned_bytes: dict[int, int] = {}

    # Errors on demand

    def refuse(self, call: str, status: int, *, after: int = 0) -> None:
        """Let a call fail once, after `after` successful calls."""
        self._refused[call] = (status, after)

    def fault(self, kernel: str, status: int = ILLEGAL_ADDRESS) -> None:
        """Let a kernel fail when it runs; the device is lost then."""
        self._faults[kernel] = status

    def call(self, name: str) -> None:
        """Start of every call of CUDA. Raises CudaError."""
        self.calls[name] += 1
        if self.lost:
            raise CudaError(self.lost)
        if name in self._refused:
            status, after = self._refused[name]
            if after == 0:
                del self._refused[name]
                raise CudaError(status)
            self._refused[name] = (status, after - 1)

    # Memory

    def malloc(self, nbytes: int) -> int:
        """Allocate device memory; returns 0 for 0 bytes."""
        self.call("malloc")
        return self._allocate(nbytes, self._device_bytes, self.memory)

    def host_alloc(self, nbytes: int) -> int:
        """Allocate pinned memory."""
        self.call("hostAlloc")
        return self._allocate(nbytes, self._pinned_bytes, self.pinned_memory)

    def _allocate(self, nbytes: int, used: dict[int, int], limit: int) -> int:
        if nbytes == 0:
            return 0
        if sum(used.values()) + nbytes > limit:
            raise CudaError(OUT_OF_MEMORY)
        block = np.full(nbytes + ALIGNMENT, POISON, dtype=np.uint8)
        pointer = -(-block.ctypes.data // ALIGNMENT) * ALIGNMENT
        self._blocks[pointer] = block
        used[pointer] = nbytes
        return pointer

    def _require_own(self, address: int) -> None:
        """Refuse memory of another GPU: on some machines the access works, but it is always an error."""
        if not any(begin <= address < begin + size for begin, size in self._device_bytes.items()):
            raise CudaError(INVALID_VALUE)

    def free(self, pointer: int) -> None:
        """Poison memory. It is never allocated again, so a later access still reads poison."""
        if pointer:
            self._device_bytes.pop(pointer, None)
            self._pinned_bytes.pop(pointer, None)
            self._blocks[pointer].fill(POISON)

    def mem_info(self) -> tuple[int, int]:
        """(free, total) bytes of device memory."""
        self.call("memGetInfo")
        return self.memory - self.taken_memory, self.memory

    @property
    def taken_memory(self) -> int:
        """Bytes of device memory that are allocated."""
        return sum(self._device_bytes.values())

    def memset(self, pointer: int, value: int, nbytes: int) -> None:
        """Returns before the work is done."""
        self.call("memset")
        self._require_own(pointer)
        self._add(self._default, "memset", lambda: ctypes.memset(pointer, value, nbytes))

    def memcpy(self, destination: int, source: int, nbytes: int, *, to_device: bool) -> None:
        """Copy in the default stream. A copy to the device returns early: the driver has buffered the bytes."""
        self.call("memcpy")
        self._require_own(destination if to_device else source)
        if to_device:
            content = ctypes.string_at(source, nbytes)
            self._add(self._default, "memcpy", lambda: ctypes.memmove(destination, content, nbytes))
        else:
            self._finish(self._default)
            ctypes.memmove(destination, source, nbytes)

    def memcpy_async(self, destination: int, source: int, nbytes: int, stream: int, *, to_device: bool) -> None:
        """Copy between pinned and device memory."""
        self.call("memcpyAsync")
        host = source if to_device else destination
        self._require_own(destination if to_device else source)
        if not any(begin <= host and host + nbytes <= begin + size for begin, size in self._pinned_bytes.items()):
            raise AssertionError("an asynchronous copy of memory that is not pinned")
        if not to_device:
            self._add(self._own(stream), "D2H begins", lambda: ctypes.memset(destination, POISON, nbytes))
        name = "H2D" if to_device else "D2H"
        self._add(self._own(stream), name, lambda: ctypes.memmove(destination, source, nbytes))

    # Streams and events

    def create_stream(self) -> SimulatedStream:
        """Create a non-blocking stream."""
        self.call("streamCreate")
        stream = SimulatedStream(next(_handles))
        with self._lock:
            self._streams[stream.ptr] = stream
        return stream

    def create_event(self) -> SimulatedEvent:
        """Create an event with timing."""
        self.call("eventCreate")
        event = SimulatedEvent(next(_handles))
        self._events[event.ptr] = event
        return event

    def record(self, event: SimulatedEvent, stream: SimulatedStream) -> None:
        """Record the event; it is passed when all earlier work of the stream is done."""
        self.call("eventRecord")
        if event.ptr not in self._events:
            raise CudaError(INVALID_HANDLE)
        with self._lock:
            event.stream, event.passed = stream, None

        def passes() -> None:
            event.passed = len(self.done)

        self._add(stream, "event", passes)

    def query(self, pointer: int) -> int:
        """Status of an event. After the answer is determined, one stream does one piece of work."""
        self.calls["eventQuery"] += 1
        if self.lost:
            return self.lost
        if pointer not in self._events:
            return INVALID_HANDLE
        event = self._events[pointer]
        with self._lock:
            if event.stream is None or event.passed is not None:
                return 0
            self._step(event)
        return self.lost or NOT_READY

    def wait_event(self, event: SimulatedEvent) -> None:
        """Do work until an event is passed."""
        self.call("eventSynchronize")
        if event.ptr not in self._events:
            raise CudaError(INVALID_HANDLE)
        while True:
            with self._lock:
                if event.stream is None or event.passed is not None:
                    return
                self._step(event)
            if self.lost:
                raise CudaError(self.lost)

    def elapsed(self, first: SimulatedEvent, last: SimulatedEvent) -> float:
        """Milliseconds between two events: one per piece of work."""
        self.call("eventElapsedTime")
        if first.passed is None or last.passed is None:
            raise CudaError(NOT_READY)
        return float(last.passed - first.passed)

    def synchronize(self, stream: SimulatedStream | None = None) -> None:
        """Do all work, or all work of one stream."""
        self.call("synchronize")
        for one in [stream] if stream is not None else list(self._streams.values()):
            self._finish(one)

    def _finish(self, stream: SimulatedStream) -> None:
        while True:
            with self._lock:
                if not stream.work:
                    return
                self._do(stream)
            if self.lost:
                raise CudaError(self.lost)

    # Kernels

    def begin_capture(self, stream: SimulatedStream) -> None:
        """Start capturing launches into a graph."""
        self.call("streamBeginCapture")
        stream.captured = []

    def end_capture(self, stream: SimulatedStream) -> list[KernelLaunch]:
        """End the capture; returns the graph."""
        captured, stream.captured = stream.captured, None
        self.call("streamEndCapture")
        assert captured is not None
        return captured

    def launch_kernel(
        self, pointer: int, kernels: KernelSources, kernel: str, blocks: int, block_size: int, parameters: int
    ) -> None:
        """Queue a kernel in a stream, or add it to the captured graph."""
        self.call("launchKernel")
        if block_size > self.kernel_limits.get(kernel, 1024):
            raise CudaError(INVALID_VALUE)
        stream = self._own(pointer)
        content = np.frombuffer(ctypes.string_at(parameters, parameter_bytes(kernels, kernel)), dtype=np.uint8)
        launch = KernelLaunch(kernels, kernel, blocks, block_size, content)
        if stream.captured is not None:
            stream.captured.append(launch)
        else:
            self._add(stream, launch.kernel, partial(self._run, launch))

    def launch_graph(self, stream: SimulatedStream, graph: list[KernelLaunch]) -> None:
        """Queue the kernels of a graph in a stream."""
        self.call("graphLaunch")
        for launch in graph:
            self._add(stream, launch.kernel, partial(self._run, launch))

    def _run(self, launch: KernelLaunch) -> None:
        if launch.kernel in self._faults:
            self.lost = self._faults[launch.kernel]
            return
        emulate(
            launch.kernels,
            launch.kernel,
            launch.parameters.ctypes.data,
            launch.blocks,
            launch.block_size,
            backward=self.backward,
        )

    # Order of execution

    def _own(self, pointer: int) -> SimulatedStream:
        if pointer not in self._streams:
            raise CudaError(INVALID_HANDLE)
        return self._streams[pointer]

    def _add(self, stream: SimulatedStream, name: str, action: Callable[[], object]) -> None:
        self._own(stream.ptr)
        if stream.captured is not None:
            raise CudaError(STREAM_IS_CAPTURING)

        def work() -> None:
            action()
            self.done.append((stream.ptr, name))

        with self._lock:
            stream.work.append(work)

    def _do(self, stream: SimulatedStream) -> None:
        stream.work.popleft()()

    def _step(self, event: SimulatedEvent) -> None:
        """Let one stream do one piece of work."""
        busy = [stream for stream in self._streams.values() if stream.work]
        asked = [stream for stream in busy if stream is event.stream]
        others = [stream for stream in busy if stream is not event.stream]
        match self.order:
            case Order.ASKED:
                chosen = asked
            case Order.OTHERS:
                chosen = others or asked
            case Order.RANDOM:
                chosen = [self._random.choice(busy)] if busy else []
        assert chosen, "an event that no stream will pass"
        self._do(chosen[0])
