"""The interface of a back end, thin enough to replace CuPy by another CUDA binding.

All memory is allocated when a slot is made. A queue repeats the same launches; only the content of the input buffers
and the number of used bytes change from batch to batch.
"""

from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Protocol

import numpy as np
from numpy.typing import NDArray

from hltnode.processing.framework.backends._executor import DirectBatch, TableWriter
from hltnode.processing.framework.collections import Column
from hltnode.processing.framework.declaration import Grid


class BackendError(RuntimeError):
    """The back end is not available, or failed during a batch."""


class DeviceLostError(BackendError):
    """The device no longer works for this process: only a new process can continue."""


@dataclass(frozen=True, slots=True)
class DeviceMemory:
    """Memory that kernels can access. `owner` keeps it alive; its type depends on the back end."""

    pointer: int
    nbytes: int
    owner: Any

    def part(self, offset: int, nbytes: int) -> "DeviceMemory":
        """A part of the memory."""
        return DeviceMemory(self.pointer + offset, nbytes, self.owner)


@dataclass(frozen=True, slots=True)
class Mirror:
    """A host buffer (pinned if supported) and its counterpart on the device; on the CPU they are the same memory."""

    host: NDArray[np.uint8]
    device: DeviceMemory


@dataclass(frozen=True, slots=True)
class EventPlacement:
    """Placement in a batch: `offsets` is the pointer to the prefix sums, 0 without."""

    offsets: int
    divisor: int
    per_event: int
    times: int


@dataclass(frozen=True, slots=True)
class ThreadPointer:
    """A pointer at byte `position` of the parameters into the memory of the worker thread.

    The part of any event starts at byte `offset` of that memory; its elements have `stride` bytes.
    """

    position: int
    offset: int
    stride: int
    placement: EventPlacement


@dataclass(frozen=True, slots=True)
class ThreadCopy:
    """A pointer at byte `position` of the parameters to memory with one copy per worker thread.

    The copy of thread i starts i * `stride` bytes after the first one.
    """

    position: int
    stride: int


@dataclass(frozen=True, slots=True, eq=False)
class Generated:
    """For a launch of a generated kernel: its source, and its equivalent on the host (GeneratedKernel.evaluate) with
    the memory of its columns."""

    source: str
    evaluate: Callable[[Mapping[Column, NDArray[Any]], int], Iterator[None]]
    memory: Mapping[Column, DeviceMemory]


@dataclass(frozen=True, slots=True, eq=False)
class EventParts:
    """Number of parts of each event, and memory with the size of each part, u32, by which threads order them.

    after_all_parts: the kernel begins when earlier ones have computed all parts.
    """

    number: int
    sizes: DeviceMemory | None
    after_all_parts: bool


@dataclass(frozen=True, slots=True, eq=False)
class Launch:
    """A launch of one kernel on a grid.

    `parameters` are the bytes of its struct, with the size that the compiler gives it. `parts`: for a grid over parts.
    """

    kernel: str
    parameters: NDArray[np.uint8]
    grid: Grid
    max_blocks: int
    block_size: int
    thread_pointers: tuple[ThreadPointer, ...] = ()
    thread_copies: tuple[ThreadCopy, ...] = ()
    parts: EventParts | None = None
    generated: Generated | None = None


@dataclass(frozen=True, slots=True, eq=False)
class EventTables:
    """Tables of the events and fragments of a batch (columns of batch.raw_banks), which give the size of each event."""

    event_rows: DeviceMemory
    mep_rows: DeviceMemory
    mfp_rows: DeviceMemory
    fragment_rows: DeviceMemory


@dataclass(frozen=True, slots=True)
class Timings:
    """Times of the stages of the last batch in s."""

    h2d: float
    kernels: float
    d2h: float


class Queue(Protocol):
    """Runs the launches of one slot for each batch (a CUDA stream with a captured graph, or a thread)."""

    def submit(
        self,
        uploads: Sequence[tuple[Mirror, int]],
        downloads: Sequence[tuple[Mirror, int]],
        ended: Callable[[], None] | None = None,
    ) -> None:
        """Start a batch: copy the first bytes of each upload, run the launches, copy the downloads. Returns at once.

        A thread of the back end calls `ended` when the batch is done or failed; `poll` gives the result.

        Raises BackendError if the batch cannot start; the buffers are then not in use.
        """

    def compute_directly(self) -> bool:
        """Compute a batch in the calling thread, beside the batches of other queues; its results are there at once.

        False if nothing was computed: the back end has no such threads, or the queue was not made for it.
        """

    def direct_batch(self, tables: TableWriter, input_data: NDArray[np.uint8], /) -> DirectBatch | None:
        """The same for compiled code, which writes the tables, too. None where `compute_directly` computes nothing."""

    def compute_here(self) -> bool:
        """Compute a batch in the calling thread, after the batches of other queues; its results are there at once.

        False if nothing was computed: no thread of the host computes on this back end. Raises as `poll`.
        """

    def poll(self) -> bool:
        """True if the batch is done. Raises BackendError if it failed, DeviceLostError if no further batch can run."""

    def wait(self) -> None:
        """Block until the batch is done. Raises as `poll`."""

    @property
    def timings(self) -> Timings:
        """Times of the last finished batch."""

    @property
    def progress(self) -> int:
        """Number of finished steps of batches at the last poll; it only rises.

        The back end defines a step, but each one is short: if no step ends for seconds, the back end hangs.
        """


class Backend(Protocol):
    """Runs kernels on one kind of device."""

    @property
    def name(self) -> str: ...

    @property
    def threads(self) -> int:
        """Number of computing host threads; 1 for a GPU."""

    @property
    def fuses_events(self) -> bool:
        """Whether a thread runs consecutive algorithms on one event before it takes the next event."""

    @property
    def description(self) -> str:
        """Description of the device for people. Raises BackendError."""

    @property
    def gpu(self) -> int | None:
        """The ordinal of its GPU among those in CUDA_VISIBLE_DEVICES; None for a CPU."""

    def free_bytes(self) -> int:
        """Bytes that can still be allocated on the device."""

    def allocate_mirror(self, nbytes: int) -> Mirror:
        """Zeroed host memory for asynchronous copies, and the same size on the device."""

    def allocate_mapped(self, nbytes: int) -> Mirror:
        """Zeroed host memory that kernels write directly; `device` is the same memory."""

    def allocate_device(self, nbytes: int) -> DeviceMemory:
        """Zeroed device memory."""

    def write(self, memory: DeviceMemory, content: NDArray[np.uint8]) -> None:
        """Copy constants to the device and wait."""

    def read(self, memory: DeviceMemory, nbytes: int) -> NDArray[np.uint8]:
        """Copy device memory to a new host array and wait. For validation only."""

    def compile(self, kernel: str, source: str) -> bool:
        """Compile a generated kernel for later launches.

        False without a compiler: the host then evaluates it, so its columns must be retained. Raises BackendError.
        """

    def create_queue(
        self,
        launches: Sequence[Launch],
        batch_header: DeviceMemory,
        thread_bytes: int,
        tables: EventTables | None,
        *,
        direct: bool = False,
    ) -> Queue:
        """A queue for one slot. direct: for `Queue.compute_directly`, with thread memory of its own.

        With fused events, launches have pointers into `thread_bytes` of each thread, and to copies per thread. With
        `tables`, which the first launches write, threads may take large events first.
        """

    def close(self) -> None:
        """Stop threads and free the resources of the back end."""
