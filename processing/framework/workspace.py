"""A workspace: all resources of one batch, allocated once, with which it runs through a sequence.

These are pinned input, device input, arena, pinned output, the parameter blocks of the kernels and a queue with the
captured sequence. A batch allocates nothing. memory_plan.py plans the places of columns and the memory that they share.
"""

from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Self

import numpy as np
from numpy.typing import NDArray

from hltnode.processing.framework.backends._executor import DirectBatch
from hltnode.processing.framework.backends.interface import (
    Backend,
    DeviceMemory,
    EventParts,
    EventPlacement,
    EventTables,
    Generated,
    Launch,
    Mirror,
    Queue,
    ThreadCopy,
    ThreadPointer,
    Timings,
)
from hltnode.processing.framework.batch import (
    BATCH_INPUTS,
    N_SUBDETECTORS,
    BatchTables,
    MepInBatch,
    batch_header,
    event_flags,
    event_rows,
    fragment_rows,
    mep_rows,
    mfp_rows,
    raw_input,
)
from hltnode.processing.framework.chain import Chain
from hltnode.processing.framework.codegen import parameter_columns, parameter_words
from hltnode.processing.framework.collections import Collection, Column, Role
from hltnode.processing.framework.declaration import Algorithm, AlgorithmSequence, EventSizes, Grid
from hltnode.processing.framework.histograms import histogram_counts
from hltnode.processing.framework.memory_plan import (
    MemoryPlan,
    Region,
    thread_placement,
)
from hltnode.processing.framework.output_lists import ListContent, OutputList, no_words


@dataclass(frozen=True, slots=True)
class BatchOutput:
    """Views of the pinned output of one batch, one row per event; valid until the next submit().

    accepted: u8; lines: shape (events, words), line i is bit i % 32 of word i // 32; flags: u32, bits of Engine.flags;
    selected: the words of the selected candidates of accepted events; no words for other events, and for a chain
    without reports. counts: u32 per event, by the names of the chain. summary: counters of luminosity summaries, shape
    (events, Engine.summary); lists: the output lists of the chain, by name.
    """

    accepted: NDArray[np.uint8]
    lines: NDArray[np.uint32]
    flags: NDArray[np.uint32]
    selected: ListContent
    counts: Mapping[str, NDArray[np.uint32]]
    lists: Mapping[str, ListContent]
    summary: NDArray[np.uint32]

    def copy(self) -> Self:
        """A copy that stays valid."""
        return type(self)(
            self.accepted.copy(),
            self.lines.copy(),
            self.flags.copy(),
            self.selected.copy(),
            {name: count.copy() for name, count in self.counts.items()},
            {name: content.copy() for name, content in self.lists.items()},
            self.summary.copy(),
        )


class Workspace:
    """Resources of one batch. Fill `input_data`, then seal(), submit(), poll() or wait(), read `output`."""

    def __init__(
        self,
        backend: Backend,
        chain: Chain,
        constants: Mapping[str, DeviceMemory],
        plan: MemoryPlan,
        sources: Mapping[str, str],
        *,
        direct: bool = False,
    ) -> None:
        self._backend = backend
        self._sources = sources
        """Sources of generated kernels, by the name of the algorithm."""
        self._chain = chain
        sequence = chain.sequence
        self._plan = plan
        self._limits = plan.limits
        self._columns = {column.name: column for column in (*BATCH_INPUTS, *sequence.columns)}
        self._mirrors = {column.name: backend.allocate_mirror(column.nbytes(plan.limits)) for column in plan.mirrors}
        self._mirrors |= {column.name: backend.allocate_mapped(column.nbytes(plan.limits)) for column in plan.mapped}
        copies = backend.threads if backend.fuses_events else 1
        self._copy_bytes = {column: plan.copy_bytes(column) for column in plan.accumulated}
        self._accumulated = {
            column: backend.allocate_mirror(copies * nbytes) for column, nbytes in self._copy_bytes.items()
        }
        self._taken = np.zeros(plan.limits.histogram_counts, np.uint32)
        self._views: dict[str, NDArray[Any]] = {}
        """The host memory of columns with their types, made when first used."""
        self._decision_rows: tuple[NDArray[np.uint8], NDArray[np.uint32], NDArray[np.uint32]] | None = None
        self._memory: dict[str, DeviceMemory] = dict(constants)
        self._memory |= {
            column.name: mirror.device.part(0, column.nbytes(plan.limits))
            for column, mirror in self._accumulated.items()
        }
        self._memory |= {name: mirror.device for name, mirror in self._mirrors.items()}
        arena = backend.allocate_device(plan.arena.nbytes)
        for region in plan.arena.regions:
            self._memory[region.column.name] = arena.part(region.offset, region.nbytes)
        self._most_parts = max((algorithm.parts or 1 for algorithm in sequence), default=1)
        self._thread_regions = {region.column: region for region in plan.thread.regions}
        launches = [launch for algorithm in sequence for launch in self._launches(algorithm)]
        self.queue: Queue = backend.create_queue(
            launches, self._memory[batch_header.name], plan.thread.nbytes, self._event_tables(), direct=direct
        )
        self._tables = BatchTables(
            header=self._host(batch_header),
            mfp_rows=self._host(mfp_rows),
            mep_rows=self._host(mep_rows).reshape(-1, N_SUBDETECTORS),
            event_rows=self._host(event_rows),
            event_flags=self._host(event_flags),
            max_events_per_mep=plan.limits.events_per_mep,
        )
        self.input_data: NDArray[np.uint8] = self._host(raw_input)
        """Pinned bytes for whole MFPs, at multiples of batch.MFP_ALIGNMENT."""
        self._input_used = 0
        outputs = (column for column in self._columns.values() if column.role & Role.OUTPUT)
        self._outputs = [
            (self._mirrors[column.name], column.count(plan.limits) - column.extra, column.extra, column.dtype.itemsize)
            for column in outputs
        ]
        """Of each output column: its memory, elements of a full batch, elements beyond the events, bytes of one. Small
        batches, such as one request, would spend their time on the columns otherwise."""

    def _host(self, column: Column) -> NDArray[Any]:
        if (view := self._views.get(column.name)) is None:
            view = self._views[column.name] = self._mirrors[column.name].host.view(column.dtype)
        return view

    def _event_tables(self) -> EventTables | None:
        """None if no algorithm places fragments."""
        columns = (event_rows, mep_rows, mfp_rows, fragment_rows)
        if any(column.name not in self._memory for column in columns):
            return None
        return EventTables(*(self._memory[column.name] for column in columns))

    def _launches(self, algorithm: Algorithm) -> Iterator[Launch]:
        """Separate launches for large events if a block has many threads."""
        alone = (EventSizes(algorithm.block_size),)
        for events in alone if self._backend.fuses_events else algorithm.launches:
            yield self._launch(algorithm, events)

    def _launch(self, algorithm: Algorithm, events: EventSizes) -> Launch:
        pointers = np.zeros(len(columns := parameter_columns(algorithm)), dtype=np.uint64)
        thread_pointers: list[ThreadPointer] = []
        copies: list[ThreadCopy] = []
        for index, column in enumerate(columns):
            if column in self._copy_bytes and self._backend.fuses_events:
                copies.append(ThreadCopy(index * pointers.itemsize, self._copy_bytes[column]))
            region = self._thread_regions.get(column)
            if region is None:
                pointers[index] = self._memory[column.name].pointer
            else:
                thread_pointers.append(self._thread_pointer(region, index * pointers.itemsize, algorithm.grid))
        limits = self._limits
        words = parameter_words(algorithm, limits, events)
        return Launch(
            kernel=algorithm.kernel,
            parameters=np.concatenate([pointers.view(np.uint8), np.array(words, dtype=np.uint32).view(np.uint8)]),
            grid=algorithm.grid,
            max_blocks=algorithm.n_blocks(events=limits.events, rows=limits.rows, fragments=limits.fragments),
            parts=self._parts(algorithm),
            block_size=events.block_size,
            thread_pointers=tuple(thread_pointers),
            thread_copies=tuple(copies),
            generated=self._generated(algorithm),
        )

    def _parts(self, algorithm: Algorithm) -> EventParts | None:
        if algorithm.parts is None:
            return None
        sizes = None if algorithm.part_sizes is None else self._memory[algorithm.part_sizes.name]
        return EventParts(algorithm.parts, sizes, algorithm.after_all_parts)

    def _generated(self, algorithm: Algorithm) -> Generated | None:
        if algorithm.generated is None:
            return None
        memory = {column: self._memory[column.name] for column in algorithm.columns if column.name in self._memory}
        return Generated(self._sources[algorithm.name], algorithm.generated.evaluate, memory)

    def _thread_pointer(self, region: Region, position: int, grid: Grid) -> ThreadPointer:
        placement = thread_placement(region.column, grid)
        offsets = 0 if placement.offsets is None else self._memory[placement.offsets.name].pointer
        return ThreadPointer(
            position=position,
            offset=region.offset,
            stride=region.column.dtype.itemsize,
            placement=EventPlacement(offsets, placement.divisor, placement.per_event, placement.times),
        )

    @property
    def n_events(self) -> int:
        """Number of events of the sealed batch."""
        return int(self._tables.header["n_events"][0])

    def seal(self, meps: Sequence[MepInBatch]) -> None:
        """Write the tables for the MEPs in `input_data`. Raises ValueError above the limits."""
        self._input_used = self._tables.fill(meps, self.input_data)

    def submit(self, ended: Callable[[], None] | None = None) -> None:
        """Start the sealed batch; returns at once. Raises BackendError.

        A thread of the back end calls `ended` when the batch is done or failed; `poll` gives the result.
        """
        self.queue.submit(self._uploads(), self._downloads(), ended)

    def compute_directly(self) -> bool:
        """Compute the sealed batch in the calling thread, beside the batches of other workspaces; then read `output`.

        A batch that takes less time than two hand-overs between threads has its results earlier in this way. False if
        nothing was computed: the workspace is not a direct one, the back end is a GPU, or the host evaluates kernels.
        """
        return self.queue.compute_directly()

    @property
    def compiled_batch(self) -> DirectBatch | None:
        """The batch, for compiled code that writes a MEP into it and computes it in its own thread; then read `output`.

        None where `compute_directly` computes nothing.
        """
        return self.queue.direct_batch(self._tables.writer, self.input_data)

    def compute_here(self) -> bool:
        """Compute the sealed batch in the calling thread and the others of the back end; then read `output`.

        It waits for batches of other workspaces, as a submitted one does, but for no other thread to begin or to tell
        of the end. False if nothing was computed: the back end is a GPU. Raises as `poll`.
        """
        return self.queue.compute_here()

    @property
    def sharing_threads(self) -> int:
        """The most threads of the back end that share the sealed batch: by its events, or the parts of them."""
        return max(1, min(self._backend.threads, self.n_events * self._most_parts))

    def _uploads(self) -> list[tuple[Mirror, int]]:
        header = self._tables.header[0]
        used = {
            batch_header.name: batch_header.dtype.itemsize,
            raw_input.name: self._input_used,
            mfp_rows.name: int(header["n_rows"]) * mfp_rows.dtype.itemsize,
            mep_rows.name: int(header["n_meps"]) * N_SUBDETECTORS * mep_rows.dtype.itemsize,
            event_rows.name: self.n_events * event_rows.dtype.itemsize,
            event_flags.name: self.n_events * event_flags.dtype.itemsize,
        }
        return [(self._mirrors[name], nbytes) for name, nbytes in used.items() if nbytes]

    def _downloads(self) -> list[tuple[Mirror, int]]:
        n, limit = self.n_events, self._limits.events
        of_events = [
            (mirror, (n * of_batch // limit + extra) * itemsize)
            for mirror, of_batch, extra, itemsize in (self._outputs if n else ())
        ]
        return [*of_events, *((mirror, mirror.host.nbytes) for mirror in self._accumulated.values())]

    def poll(self) -> bool:
        """True if the batch is done.

        Raises BackendError if the back end failed, DeviceLostError if it can run no further batch.
        """
        return self.queue.poll()

    def wait(self) -> None:
        """Block until the batch is done. Raises as `poll`."""
        self.queue.wait()

    @property
    def sequence(self) -> AlgorithmSequence:
        """The sequence that runs."""
        return self._chain.sequence

    @property
    def timings(self) -> Timings:
        """Times of the last batch in s: transfer to the device, kernels, transfer back."""
        return self.queue.timings

    @property
    def progress(self) -> int:
        """Number of finished steps of its batches at the last poll; it only rises."""
        return self.queue.progress

    @property
    def decision_rows(self) -> tuple[NDArray[np.uint8], NDArray[np.uint32], NDArray[np.uint32]]:
        """`accepted`, `lines` and `flags` as in `output`, with rows for the largest batch: the first ones are valid.

        Made once, because the views of `output` take 40 us where the caches have no code of them. Raises ValueError for
        a chain without decisions.
        """
        if self._decision_rows is None:
            chain = self._chain
            if chain.accepted is None or chain.lines is None:
                raise ValueError(f"chain {chain.name} makes no decisions")
            self._decision_rows = self._host(chain.accepted), self._host(chain.lines), self._host(event_flags)
        return self._decision_rows

    @property
    def output(self) -> BatchOutput:
        """Results of the last batch. Raises ValueError for a chain without decisions."""
        n = self.n_events
        chain = self._chain
        if chain.accepted is None or chain.lines is None:
            raise ValueError(f"chain {chain.name} makes no decisions")
        return BatchOutput(
            accepted=self._host(chain.accepted)[:n],
            lines=self._host(chain.lines).reshape(-1, self._limits.line_words)[:n],
            flags=self._host(event_flags)[:n],
            selected=no_words(n) if chain.selected is None else self._list(chain.selected, n),
            counts={name: self._host(column)[:n] for name, column in chain.counts.items()},
            lists={each.name: self._list(each, n) for each in chain.lists},
            summary=np.zeros((n, 0), np.uint32)
            if chain.summary is None
            else self._host(chain.summary.column).reshape(-1, len(chain.summary.counters))[:n],
        )

    def take_histogram_counts(self) -> NDArray[np.uint32]:
        """The histogram counts of the batches since the last call, u32 each.

        Call it while no batch runs, and before any counter increases by 2^32.
        """
        if histogram_counts not in self._accumulated:
            return self._taken.copy()
        counters = self._accumulated[histogram_counts].host.view(np.uint32)
        copies = counters.reshape(-1, self._copy_bytes[histogram_counts] // counters.itemsize)
        total = copies[:, : len(self._taken)].sum(axis=0, dtype=np.uint32)
        before, self._taken = self._taken, total
        counted: NDArray[np.uint32] = total - before
        return counted

    def _list(self, of: OutputList, n_events: int) -> ListContent:
        delivered = {column: self._host(column) for column in of.delivered.values()}
        return of.content(self._host(of.offsets)[: n_events + 1], delivered)

    def host_array(self, name: str) -> NDArray[Any]:
        """The pinned copy of an input or output column, or an output list, with its dtype."""
        return self._host(self._columns[name])

    def fetch(self, name: str, count: int | None = None) -> NDArray[Any]:
        """Copy a column of the device, or its first `count` elements, to a new host array.

        For validation and tests: it waits for the device. Raises ValueError for a column with shared memory.
        """
        if name not in self._columns:
            self._chain.sequence.column(name)
        column = self._columns[name]
        if name not in self._plan.readable:
            raise ValueError(
                f"{name} is not retained: other columns share its memory; make the engine with retain=[{name!r}]"
            )
        nbytes = column.nbytes(self._limits) if count is None else count * column.dtype.itemsize
        if column.role is Role.MAPPED:
            return self._mirrors[name].host[:nbytes].view(column.dtype).copy()
        return self._backend.read(self._memory[column.name], nbytes).view(column.dtype)

    def first(self, collection: Collection) -> NDArray[np.int64]:
        """i64[n_events], start of the objects of each event in the columns of a collection.

        For a collection with parts i64[n_events * parts], the start of the objects of each part. Raises ValueError for
        a collection without placement.
        """
        if collection.placement is None:
            raise ValueError(f"{collection.name} has no part per event")
        offsets = collection.placement.offsets
        n = self.n_events * (collection.parts or 1)
        return collection.placement.first(None if offsets is None else self.fetch(offsets.name), n)
