"""The names of CuPy that the CUDA back end uses, on simulated GPUs.

Each thread has a current GPU, initially the first one. Objects belong to the GPU that was current when they were made,
and can be used only while it is current. CUDA itself allows some calls for another GPU.
"""

from __future__ import annotations

import ctypes
import hashlib
import sys
import threading
from collections.abc import Sequence
from importlib.machinery import ModuleSpec
from types import ModuleType, SimpleNamespace
from typing import Any

import pytest

from hltnode.processing.framework.kernel_sources import KernelSources
from tests.processing.framework.kernel_runner import generated_kernels
from tests.processing.framework.simulated_gpu import (
    INVALID_DEVICE,
    INVALID_HANDLE,
    CudaError,
    KernelLaunch,
    SimulatedEvent,
    SimulatedGpu,
    SimulatedStream,
)

CUBIN = b"cubin of "
MAX_THREADS, SHARED_BYTES, REGISTERS = 0, 1, 4


class CudaDriverError(CudaError):
    """An error of the driver API, with the number of the runtime error."""


class NvrtcError(RuntimeError):
    """The exception of NVRTC."""


class FakeNvrtc:
    """Accepts every program; its cubin is a digest of source and options, then the source. With `log` it refuses
    programs that have a source."""

    NVRTCError = NvrtcError

    def __init__(self) -> None:
        self.version = (13, 0)
        self.build = "V13.0.1"
        self.architectures = (75, 80, 90, 100, 120)
        self.log = ""
        self.missing = False
        self.compiled: list[tuple[str, tuple[str, ...]]] = []
        """Source and options of each program that had a source."""
        self._programs: dict[int, tuple[str, tuple[str, ...]]] = {}

    def getVersion(self) -> tuple[int, int]:  # noqa: N802
        if self.missing:
            raise RuntimeError("libnvrtc.so.13: cannot open shared object file")
        return self.version

    def getSupportedArchs(self) -> tuple[int, ...]:  # noqa: N802
        return self.architectures

    def createProgram(self, source: str, _name: str, _headers: Sequence[str], _names: Sequence[str]) -> int:  # noqa: N802
        self._programs[len(self._programs) + 1] = (source, ())
        return len(self._programs)

    def compileProgram(self, program: int, options: Sequence[str]) -> None:  # noqa: N802
        source, _ = self._programs[program]
        if source:
            self.compiled.append((source, tuple(options)))
            if self.log:
                raise NvrtcError("NVRTC_ERROR_COMPILATION (6)")
        self._programs[program] = (source, tuple(options))

    def getProgramLog(self, _program: int) -> str:  # noqa: N802
        return self.log

    def getCUBIN(self, program: int) -> bytes:  # noqa: N802
        source, _ = self._programs[program]
        return CUBIN + hashlib.sha256(repr(self._programs[program]).encode()).digest() + source.encode()

    def getPTX(self, _program: int) -> bytes:  # noqa: N802
        return f"//\n// Cuda compilation tools, {self.build}\n//\n.version 9.0\n".encode()

    def destroyProgram(self, _program: int) -> None:  # noqa: N802
        pass


class _Current(threading.local):
    """State of a thread."""

    ordinal = 0


class CupyStandIn(ModuleType):
    """Stands for the module `cupy`. A test may change the attributes that describe the installation; `gpu` is the first
    of `gpus`."""

    def __init__(self, *gpus: SimulatedGpu) -> None:
        super().__init__("cupy")
        self.__spec__ = ModuleSpec("cupy", None)
        self.gpus = gpus
        self.gpu = gpus[0]
        self.nvrtc = FakeNvrtc()
        self.cuda_version = 13000
        self.driver_version = 13000
        self.devices = len(gpus)
        self.devices_error = 0
        self.functions: dict[int, tuple[SimulatedGpu, str, KernelSources]] = {}
        self._thread = _Current()
        self.cuda = SimpleNamespace(
            runtime=self._runtime(),
            driver=self._driver(),
            nvrtc=self.nvrtc,
            Device=lambda ordinal: SimpleNamespace(compute_capability=self.gpus[ordinal].capability),
            Memory=lambda nbytes: Memory(self.current, nbytes),
            PinnedMemory=lambda nbytes: PinnedMemory(self.current, nbytes),
            PinnedMemoryPointer=lambda memory, offset: memory.buffer(offset),
            Module=lambda: Module(self),
            Stream=lambda non_blocking: Stream(self, non_blocking),
            Event=lambda block=False: Event(self),
            get_elapsed_time=lambda first, last: self.current.elapsed(first.simulated, last.simulated),
        )

    @property
    def current(self) -> SimulatedGpu:
        """The current GPU of this thread."""
        return self.gpus[self._thread.ordinal]

    def _set_device(self, ordinal: int) -> None:
        if not 0 <= ordinal < len(self.gpus):
            raise CudaError(INVALID_DEVICE)
        self._thread.ordinal = ordinal

    def _runtime(self) -> SimpleNamespace:
        to_device, to_host = 1, 2
        return SimpleNamespace(
            CUDARuntimeError=CudaError,
            memcpyHostToDevice=to_device,
            memcpyDeviceToHost=to_host,
            runtimeGetVersion=lambda: self.cuda_version,
            driverGetVersion=lambda: self.driver_version,
            getDeviceCount=self._device_count,
            getDeviceProperties=lambda ordinal: {"name": self.gpus[ordinal].name.encode()},
            setDevice=self._set_device,
            memGetInfo=lambda: self.current.mem_info(),
            memset=lambda pointer, value, nbytes: self.current.memset(pointer, value, nbytes),
            memcpy=lambda to, source, nbytes, kind: self.current.memcpy(
                to, source, nbytes, to_device=kind == to_device
            ),
            memcpyAsync=lambda to, source, nbytes, kind, stream: self.current.memcpy_async(
                to, source, nbytes, stream, to_device=kind == to_device
            ),
            deviceSynchronize=lambda: self.current.synchronize(),
            eventQuery=lambda event: self.current.query(event),
        )

    def _device_count(self) -> int:
        if self.devices_error:
            raise CudaError(self.devices_error)
        return self.devices

    def _driver(self) -> SimpleNamespace:
        def attribute(number: int, function: int) -> int:
            limits = self.current.kernel_limits
            return {MAX_THREADS: limits.get(self._kernel(function)[1], 1024), SHARED_BYTES: 1024, REGISTERS: 40}[number]

        return SimpleNamespace(
            CUDADriverError=CudaDriverError,
            CU_FUNC_ATTRIBUTE_MAX_THREADS_PER_BLOCK=MAX_THREADS,
            CU_FUNC_ATTRIBUTE_SHARED_SIZE_BYTES=SHARED_BYTES,
            CU_FUNC_ATTRIBUTE_NUM_REGS=REGISTERS,
            funcGetAttribute=attribute,
            launchKernel=self._launch_kernel,
        )

    def _kernel(self, function: int) -> tuple[KernelSources, str]:
        gpu, name, kernels = self.functions[function]
        if gpu is not self.current:
            raise CudaDriverError(INVALID_HANDLE)
        return kernels, name

    def _launch_kernel(self, function: int, *numbers: int) -> None:
        *grid_and_block, shared_bytes, stream, arguments, _extra = numbers
        blocks, _, _, block_size, _, _ = grid_and_block
        assert shared_bytes == 0
        address = ctypes.c_uint64.from_address(arguments).value
        self.current.launch_kernel(stream, *self._kernel(function), blocks, block_size, address)


class Memory:
    """Device memory that is freed with its object."""

    def __init__(self, gpu: SimulatedGpu, nbytes: int) -> None:
        self._gpu = gpu
        self.ptr = 0
        self.ptr = gpu.malloc(nbytes)

    def __del__(self) -> None:
        self._gpu.free(self.ptr)


class PinnedMemory:
    """Pinned memory that is freed with its object."""

    def __init__(self, gpu: SimulatedGpu, nbytes: int) -> None:
        self._gpu = gpu
        self._nbytes = nbytes
        self.ptr = 0
        self.ptr = gpu.host_alloc(nbytes)

    def __del__(self) -> None:
        self._gpu.free(self.ptr)

    def buffer(self, offset: int) -> Any:
        """A buffer for numpy; it keeps the memory alive."""
        array = (ctypes.c_uint8 * (self._nbytes - offset)).from_address(self.ptr + offset)
        array.memory = self  # type: ignore[attr-defined]
        return array


class Stream:
    """A stream."""

    def __init__(self, cupy: CupyStandIn, non_blocking: bool) -> None:
        assert non_blocking, "the default stream would wait for this one"
        self._cupy = cupy
        self.simulated: SimulatedStream = cupy.current.create_stream()
        self.ptr = self.simulated.ptr

    def synchronize(self) -> None:
        self._cupy.current.synchronize(self.simulated)

    def begin_capture(self) -> None:
        self._cupy.current.begin_capture(self.simulated)

    def end_capture(self) -> Graph:
        return Graph(self._cupy, self._cupy.current.end_capture(self.simulated))


class Graph:
    """A graph of kernels, in their order."""

    def __init__(self, cupy: CupyStandIn, launches: list[KernelLaunch]) -> None:
        cupy.current.call("graphInstantiate")
        self._cupy = cupy
        self._launches = launches

    def upload(self, _stream: Stream) -> None:
        self._cupy.current.call("graphUpload")

    def launch(self, stream: Stream) -> None:
        self._cupy.current.launch_graph(stream.simulated, self._launches)


class Event:
    """An event. As with CuPy, `done` hides errors."""

    def __init__(self, cupy: CupyStandIn) -> None:
        self._cupy = cupy
        self.simulated: SimulatedEvent = cupy.current.create_event()
        self.ptr = self.simulated.ptr

    @property
    def done(self) -> bool:
        return self._cupy.current.query(self.ptr) == 0

    def record(self, stream: Stream) -> None:
        self._cupy.current.record(self.simulated, stream.simulated)

    def synchronize(self) -> None:
        self._cupy.current.wait_event(self.simulated)


class Module:
    """Compiled kernels, for the GPU that was current when they were loaded."""

    def __init__(self, cupy: CupyStandIn) -> None:
        self._cupy = cupy
        self._gpu = cupy.current

    def load(self, cubin: bytes) -> None:
        self._cupy.current.call("moduleLoad")
        if not cubin.startswith(CUBIN):
            raise CudaDriverError(200)
        self._source = cubin[len(CUBIN) + hashlib.sha256().digest_size :].decode()

    def get_function(self, name: str) -> Function:
        kernels = self._gpu.kernels
        if "HLT_KERNEL(" in self._source:
            kernels = generated_kernels(self._source, kernels.folders, name)
        return Function(self._cupy, self._gpu, name, kernels)


class Function:
    """A kernel."""

    def __init__(self, cupy: CupyStandIn, gpu: SimulatedGpu, name: str, kernels: KernelSources) -> None:
        self.ptr = len(cupy.functions) + 1
        cupy.functions[self.ptr] = gpu, name, kernels


def install(monkeypatch: pytest.MonkeyPatch, *gpus: SimulatedGpu) -> CupyStandIn:
    """Let `import cupy` find the stand-in."""
    stand_in = CupyStandIn(*gpus)
    monkeypatch.setenv("CUDA_DEVICE_ORDER", "PCI_BUS_ID")
    monkeypatch.setitem(sys.modules, "cupy", stand_in)
    return stand_in
