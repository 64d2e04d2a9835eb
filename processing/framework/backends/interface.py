"""What a back end must offer: thin enough that CuPy can be swapped for another binding of CUDA.

All memory is allocated when a slot is made. A queue runs the same launches again and again; what changes from batch to
batch is the content of the input buffers and how many of their bytes are used.
"""

from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Protocol

import numpy as np
from numpy.typing import NDArray

from hltnode.processing.framework.collections import Column
from hltnode.processing.framework.declaration import Grid


class BackendError(RuntimeError):
    """The back end is not there, or failed while it ran a batch."""


class DeviceLostError(BackendError):
    """The device computes nothing any more for this process: only a new process can go on."""


@dataclass(frozen=True, slots=True)
class DeviceMemory:
    """Memory that kernels can reach. `owner` keeps it alive; what it is is up to the back end."""

    pointer: int
    nbytes: int
    owner: Any

    def part(self, offset: int, nbytes: int) -> "DeviceMemory":
        """Some bytes of it."""
        return DeviceMemory(self.pointer + offset, nbytes, self.owner)


@dataclass(frozen=True, slots=True)
class Mirror:
    """A host buffer (pinned where that exists) and its counterpart on the device; on the CPU they are one."""

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
    """A pointer among the parameters, `position` bytes behind their begin, that leads into the memory of the worker
    thread: the part of any event begins `offset` bytes behind the start of that memory, its elements have `stride`
    bytes."""

    position: int
    offset: int
    stride: int
    placement: EventPlacement


@dataclass(frozen=True, slots=True)
class ThreadCopy:
    """A pointer among the parameters, `position` bytes behind their begin, to memory of which each worker thread has a
    copy of its own: that of thread i begins i * `stride` bytes behind that of the first."""

    position: int
    stride: int


@dataclass(frozen=True, slots=True, eq=False)
class Generated:
    """Of a launch of a generated kernel: its source, and what does the same on the host (GeneratedKernel.evaluate) with
    the memory of its columns."""

    source: str
    evaluate: Callable[[Mapping[Column, NDArray[Any]], int], Iterator[None]]
    memory: Mapping[Column, DeviceMemory]


@dataclass(frozen=True, slots=True, eq=False)
class Launch:
    """One kernel, to be run on a grid. `parameters` are the bytes of its struct, as long as the compiler makes it."""

    kernel: str
    parameters: NDArray[np.uint8]
    grid: Grid
    max_blocks: int
    block_size: int
    thread_pointers: tuple[ThreadPointer, ...] = ()
    thread_copies: tuple[ThreadCopy, ...] = ()
    generated: Generated | None = None


@dataclass(frozen=True, slots=True, eq=False)
class EventTables:
    """Where the events and fragments of a batch lie, and so how large each event is: the columns of batch.raw_banks."""

    event_rows: DeviceMemory
    mep_rows: DeviceMemory
    mfp_rows: DeviceMemory
    fragment_rows: DeviceMemory


@dataclass(frozen=True, slots=True)
class Timings:
    """Seconds that the stages of the last batch took."""

    h2d: float
    kernels: float
    d2h: float


class Queue(Protocol):
    """Runs the launches of one slot, batch after batch (a CUDA stream with a captured graph, or a thread)."""

    def submit(
        self,
        uploads: Sequence[tuple[Mirror, int]],
        downloads: Sequence[tuple[Mirror, int]],
        ended: Callable[[], None] | None = None,
    ) -> None:
        """Start a batch: copy the first bytes of each upload, run the launches, copy the downloads. Returns at once.

        `ended` is called, in a thread of the back end, when the batch is done or has failed: `poll` tells which.

        Raises BackendError if it cannot be started; the buffers are not in use then.
        """

    def poll(self) -> bool:
        """Whether the batch is done. Raises BackendError if it failed, DeviceLostError if none can be run any more."""

    def wait(self) -> None:
        """Block until the batch is done. Raises as `poll`."""

    @property
    def timings(self) -> Timings:
        """Of the last batch that is done."""

    @property
    def progress(self) -> int:
        """Steps of batches that are behind the back end, as of the last poll; only rises. How much a step is is up to
        the back end, but each ends soon: when no step ends for seconds the back end hangs."""


class Backend(Protocol):
    """One way to run kernels."""

    @property
    def name(self) -> str: ...

    @property
    def threads(self) -> int:
        """Host threads that compute; 1 for a GPU."""

    @property
    def fuses_events(self) -> bool:
        """Whether a thread takes an event through algorithms that follow one another before it takes the next."""

    @property
    def description(self) -> str:
        """What computes, for people. Raises BackendError."""

    def free_bytes(self) -> int:
        """Bytes that can still be allocated where the kernels run."""

    def allocate_mirror(self, nbytes: int) -> Mirror:
        """Host memory that can be copied asynchronously, and as much on the device. Zeroed."""

    def allocate_device(self, nbytes: int) -> DeviceMemory:
        """Device memory. Zeroed."""

    def write(self, memory: DeviceMemory, content: NDArray[np.uint8]) -> None:
        """Copy constants to the device and wait."""

    def read(self, memory: DeviceMemory, nbytes: int) -> NDArray[np.uint8]:
        """Copy device memory to a new host array and wait. For validation only."""

    def compile(self, kernel: str, source: str) -> bool:
        """Compile a generated kernel, which launches name later. False where there is no compiler: it is evaluated on
        the host then, so that its columns must be retained. Raises BackendError."""

    def create_queue(
        self,
        launches: Sequence[Launch],
        batch_header: DeviceMemory,
        thread_bytes: int,
        tables: EventTables | None,
    ) -> Queue:
        """A queue for one slot. Launches have pointers into `thread_bytes` of each thread where events are fused, and
        to copies that each thread has. With `tables`, which the first launches write, threads may take large events
        first."""

    def close(self) -> None:
        """Stop threads and free what the back end holds."""
