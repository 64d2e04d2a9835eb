"""The CPU back end: the kernels of a chain compiled as plain C++, run by cpu_executor.cpp.

Host and device memory are the same, so nothing is copied. A batch runs on its own thread without the GIL; the threads
of the executor share it event by event.
"""

import contextlib
import ctypes
import mmap
import time
from collections.abc import Callable, Iterator, Sequence
from concurrent.futures import Future, ThreadPoolExecutor
from concurrent.futures import wait as wait_for
from dataclasses import dataclass
from itertools import groupby

import numpy as np
from numpy.typing import NDArray

from hltnode.processing.framework.backends import _executor
from hltnode.processing.framework.backends._executor import DirectBatch, TableWriter
from hltnode.processing.framework.backends.cpu_compiler import compile_kernel, compiled_library, library_key
from hltnode.processing.framework.backends.host_memory import available_bytes
from hltnode.processing.framework.backends.interface import (
    BackendError,
    DeviceMemory,
    EventPlacement,
    EventTables,
    Generated,
    Launch,
    Mirror,
    Timings,
)
from hltnode.processing.framework.backends.kernel_library import KernelLibrary
from hltnode.processing.framework.batch import BATCH_HEADER
from hltnode.processing.framework.kernel_sources import KernelSources

ALIGNMENT = 64
"""Alignment in bytes: a cache line and the widest vector."""

_HUGE_PAGE = 2 << 20


def _aligned_zeros(nbytes: int) -> NDArray[np.uint8]:
    """Zeroed memory of whole pages, huge ones if available, because the first access to a page costs time."""
    # The system provides only small pages for memory that processes can share.
    pages = mmap.mmap(-1, max(nbytes, 1), flags=mmap.MAP_PRIVATE | mmap.MAP_ANONYMOUS)
    if nbytes >= _HUGE_PAGE and hasattr(mmap, "MADV_HUGEPAGE"):
        # A kernel without huge pages refuses; small pages work too.
        with contextlib.suppress(OSError):
            pages.madvise(mmap.MADV_HUGEPAGE)
    return np.frombuffer(pages, dtype=np.uint8, count=nbytes)


@dataclass(frozen=True, slots=True)
class CompiledPart:
    """Consecutive launches of compiled kernels; the program points into the launches and the memory."""

    program: "_executor.Program"
    launches: tuple[Launch, ...]
    memory_of_threads: tuple[DeviceMemory, ...]


RECORD = np.dtype(
    [
        ("begin", "<u8"),
        ("end", "<u8"),
        ("cpu", "<u8"),
        ("thread", "<u4"),
        ("stage", "<u4"),
        ("block", "<u4"),
        ("step", "<i4"),
    ]
)
"""What a thread did: `begin` and `end` as by time.perf_counter_ns, `cpu` nanoseconds of its processor time. `step`: the
kernel that ran on a block (event, part or row); WHOLE_STAGE: all `block` blocks that the thread took of the stage that
begins with kernel `stage`; WHOLE_PROGRAM: the batch."""
WHOLE_STAGE, WHOLE_PROGRAM = -1, -2

Evaluate = Callable[[], Iterator[None]]
"""Evaluates a kernel on the host, and yields during the computation to show its progress."""


class CpuQueue:
    """Runs the parts of one slot in order: compiled kernels on the threads of its back end, the others on the host.

    direct: the compiled parts again, for the calling thread and with memory of its own; None: every batch goes to the
    threads of the back end.
    """

    def __init__(
        self,
        parts: Sequence[CompiledPart | Evaluate],
        executor: "_executor.Executor",
        submitter: ThreadPoolExecutor,
        direct: Sequence[CompiledPart] | None = None,
    ) -> None:
        self._parts = tuple(parts)
        self._direct = direct
        self._compiled = [part for part in parts if isinstance(part, CompiledPart)]
        self._evaluated = 0
        self._executor = executor
        self._submitter = submitter
        self._batch: Future[float] | None = None
        self._timings = Timings(0.0, 0.0, 0.0)
        self.profile = False
        self.record = False
        """Whether `take_records` gets what the threads did."""
        self._records: list[tuple[CompiledPart, NDArray[np.void]]] = []

    def _run(self) -> float:
        begin = time.perf_counter()
        for part in self._parts:
            if isinstance(part, CompiledPart):
                self._executor.run(part.program, self.profile, self.record)
                if self.record:
                    self._records.append((part, np.frombuffer(self._executor.take_records(), RECORD)))
            else:
                for _ in part():
                    self._evaluated += 1
        return time.perf_counter() - begin

    def submit(
        self,
        uploads: Sequence[tuple[Mirror, int]],  # noqa: ARG002
        downloads: Sequence[tuple[Mirror, int]],  # noqa: ARG002
        ended: Callable[[], None] | None = None,
    ) -> None:
        if self._batch is not None:
            raise BackendError("a batch is still running in this queue")
        self._batch = self._submitter.submit(self._run)
        if ended is not None:
            self._batch.add_done_callback(lambda _batch: ended())

    def compute_directly(self) -> bool:
        if self._batch is not None:
            raise BackendError("a batch is still running in this queue")
        if self._direct is None:
            return False
        begin = time.perf_counter()
        for part in self._direct:
            part.program.run_directly()
        self._timings = Timings(0.0, time.perf_counter() - begin, 0.0)
        return True

    def direct_batch(self, tables: TableWriter, input_data: NDArray[np.uint8]) -> DirectBatch | None:
        if self._direct is None:
            return None
        return DirectBatch([part.program for part in self._direct], tables, input_data)

    def compute_here(self) -> bool:
        if self._batch is not None:
            raise BackendError("a batch is still running in this queue")
        self._timings = Timings(0.0, self._run(), 0.0)
        return True

    def poll(self) -> bool:
        if self._batch is None:
            return True
        if not self._batch.done():
            return False
        self.wait()
        return True

    def wait(self) -> None:
        if self._batch is None:
            return
        # Ctrl-C may end the wait but not the batch, which still uses the memory of this queue.
        wait_for((self._batch,))
        batch, self._batch = self._batch, None
        self._timings = Timings(0.0, batch.result(), 0.0)

    @property
    def timings(self) -> Timings:
        return self._timings

    @property
    def progress(self) -> int:
        """Number of finished events, blocks of other grids, and steps of the evaluation on the host."""
        parts = (*self._compiled, *(self._direct or ()))
        return sum(part.program.progress for part in parts) + self._evaluated

    def take_records(self) -> list[tuple[list[str], NDArray[np.void]]]:
        """For each compiled part of the batches with `record` since the last call: its kernels, and RECORD[records]."""
        taken, self._records = self._records, []
        return [([launch.kernel for launch in part.launches], records) for part, records in taken]

    def take_profile(self) -> dict[str, float]:
        """Thread seconds of each kernel since the last call, for batches with `profile`."""
        seconds: dict[str, float] = {}
        for part in self._compiled:
            for launch, nanoseconds in zip(part.launches, part.program.take_nanoseconds(), strict=True):
                seconds[launch.kernel] = seconds.get(launch.kernel, 0.0) + nanoseconds * 1e-9
        return seconds


class CpuBackend:
    """Kernels on `threads` threads, compiled for the best instruction set of this machine (or `target`).

    Generated kernels are compiled if the machine has a compiler, unless `compiles` is False. `common`: use no CPU form
    of a kernel.
    """

    name = "cpu"
    fuses_events = True

    def __init__(
        self,
        kernels: KernelSources,
        *,
        threads: int = 1,
        target: str | None = None,
        compiles: bool = True,
        common: bool = False,
    ) -> None:
        self._kernels = kernels
        self._library = KernelLibrary(kernels)
        self._compiles = compiles
        self._common = common
        self._compiled: dict[str, ctypes.CDLL | None] = {}
        """Libraries of generated kernels by their source, None without a compiler."""
        supported = self._library.targets
        self.target = target or supported[0]
        if self.target not in supported:
            raise BackendError(f"this CPU does not support {self.target!r}: it supports {', '.join(supported)}")
        if not 1 <= threads <= 1024:
            raise BackendError(f"threads must be 1 to 1024, not {threads}")
        self._executor = _executor.Executor(threads)
        self._submitter = ThreadPoolExecutor(1, thread_name_prefix="hlt1-cpu")
        self._thread_memory: list[DeviceMemory] = []

    @property
    def threads(self) -> int:
        return int(self._executor.threads)

    @property
    def description(self) -> str:
        return f"{self.threads} threads, {self.target}"

    @property
    def gpu(self) -> None:
        return None

    def free_bytes(self) -> int:
        return available_bytes()

    def allocate_mirror(self, nbytes: int) -> Mirror:
        host = _aligned_zeros(nbytes)
        return Mirror(host, DeviceMemory(host.ctypes.data, nbytes, host))

    def allocate_mapped(self, nbytes: int) -> Mirror:
        return self.allocate_mirror(nbytes)

    def allocate_device(self, nbytes: int) -> DeviceMemory:
        memory = _aligned_zeros(nbytes)
        return DeviceMemory(memory.ctypes.data, nbytes, memory)

    def write(self, memory: DeviceMemory, content: NDArray[np.uint8]) -> None:
        _array_of(memory)[: content.nbytes] = content

    def read(self, memory: DeviceMemory, nbytes: int) -> NDArray[np.uint8]:
        return _array_of(memory)[:nbytes].copy()

    def compile(self, kernel: str, source: str) -> bool:
        if not self._compiles:
            self._compiled[source] = None
        if source not in self._compiled:
            folders, digest = self._kernels.folders, self._kernels.digest(source)
            self._compiled[source] = compile_kernel(kernel, source, folders, self.target, digest)
        return self._compiled[source] is not None

    def library(self, kernel: str, source: str) -> tuple[str, bytes] | None:
        """Key and content of the library of a generated kernel, for other machines (`cpu_compiler.provide`)."""
        folders, digest = self._kernels.folders, self._kernels.digest(source)
        made = compiled_library(kernel, source, folders, self.target, digest)
        return None if made is None else (library_key(kernel, source, self.target, digest), made[0])

    def _address(self, launch: Launch) -> int:
        if launch.generated is None:
            return self._library.address(self.target, launch.kernel, common=self._common)
        library = self._compiled[launch.generated.source]
        assert library is not None
        address = ctypes.cast(library.run_block, ctypes.c_void_p).value
        assert address is not None
        return address

    def create_queue(
        self,
        launches: Sequence[Launch],
        batch_header: DeviceMemory,
        thread_bytes: int,
        tables: EventTables | None,
        *,
        direct: bool = False,
    ) -> CpuQueue:
        parts: list[CompiledPart | Evaluate] = []
        own: list[CompiledPart] | None = [] if direct else None
        for compiled, group in groupby(launches, self._is_compiled):
            if compiled:
                # Other columns may overwrite the tables later.
                of_part = None if parts else tables
                of_group = tuple(group)
                memory = self._memory_of_threads(thread_bytes)
                parts.append(self._compiled_part(of_group, batch_header, thread_bytes, of_part, memory, self.threads))
                if own is not None:
                    memory = [self.allocate_device(thread_bytes)]
                    own.append(self._compiled_part(of_group, batch_header, thread_bytes, None, memory, 1))
            else:
                # A kernel that the host evaluates takes much longer than a hand-over to the back end.
                own = None
                parts += [_on_host(launch.generated, batch_header) for launch in group if launch.generated is not None]
        return CpuQueue(parts, self._executor, self._submitter, own)

    def _is_compiled(self, launch: Launch) -> bool:
        return launch.generated is None or self._compiled[launch.generated.source] is not None

    def _compiled_part(
        self,
        launches: tuple[Launch, ...],
        batch_header: DeviceMemory,
        thread_bytes: int,
        tables: EventTables | None,
        memory_of_threads: Sequence[DeviceMemory],
        threads: int,
    ) -> CompiledPart:
        placements: dict[EventPlacement, int] = {}
        steps: list[tuple[int, int, int, int]] = []
        pointers: list[tuple[int, int, int, int, int]] = []
        copies: list[tuple[int, int, int]] = []
        parts_of_events: list[tuple[int, int, int, bool]] = []
        for step, launch in enumerate(launches):
            address = self._address(launch)
            steps.append((address, launch.parameters.ctypes.data, int(launch.grid), launch.parameters.nbytes))
            for pointer in launch.thread_pointers:
                placement = placements.setdefault(pointer.placement, len(placements))
                pointers.append((step, placement, pointer.position, pointer.offset, pointer.stride))
            copies += [(step, copy.position, copy.stride) for copy in launch.thread_copies]
            if (of_event := launch.parts) is not None:
                sizes = 0 if of_event.sizes is None else of_event.sizes.pointer
                parts_of_events.append((step, of_event.number, sizes, of_event.after_all_parts))
        program = _executor.Program(
            steps,
            batch_header.pointer,
            [(placed.offsets, placed.divisor, placed.per_event, placed.times) for placed in placements],
            pointers,
            [memory.pointer for memory in memory_of_threads],
            thread_bytes,
            copies,
            threads,
            _addresses(tables),
            parts_of_events,
        )
        return CompiledPart(program, launches, tuple(memory_of_threads))

    def _memory_of_threads(self, nbytes: int) -> list[DeviceMemory]:
        """A memory block for each thread. All queues share it: one program runs at a time.

        Earlier blocks stay, because programs point to them.
        """
        if nbytes and (not self._thread_memory or self._thread_memory[-1].nbytes < nbytes):
            self._thread_memory += [self.allocate_device(nbytes) for _ in range(self.threads)]
        return self._thread_memory[-self.threads :]

    def close(self) -> None:
        self._submitter.shutdown(wait=True)


def _addresses(tables: EventTables | None) -> tuple[int, int, int, int]:
    if tables is None:
        return 0, 0, 0, 0
    columns = (tables.event_rows, tables.mep_rows, tables.mfp_rows, tables.fragment_rows)
    events, meps, mfps, fragments = (memory.pointer for memory in columns)
    return events, meps, mfps, fragments


def _on_host(generated: Generated, batch_header: DeviceMemory) -> Evaluate:
    """Evaluate a generated kernel for the events of the batch."""
    columns = {column: _array_of(memory).view(column.dtype) for column, memory in generated.memory.items()}
    header = _array_of(batch_header).view(BATCH_HEADER.dtype)
    return lambda: generated.evaluate(columns, int(header["n_events"][0]))


def _array_of(memory: DeviceMemory) -> NDArray[np.uint8]:
    whole: NDArray[np.uint8] = memory.owner
    offset = memory.pointer - whole.ctypes.data
    return whole[offset : offset + memory.nbytes]
