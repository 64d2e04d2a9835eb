"""Memory plan of a sequence: place of every column, shared memory, bytes per slot. Allocates nothing.

On a device all events of a batch are in one algorithm at a time. Columns share the arena of a workspace by liveness:
memory becomes free after the last algorithm that reads it.

The CPU fuses events: a thread runs consecutive algorithms on one event, or on one part of an event. A column that only
one fused stage uses is in the memory of the worker thread: one block per thread holds the content for one event or
part, at the same addresses for each, so it stays in the caches.
"""

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import cached_property
from typing import Literal

from hltnode.processing.framework.batch import BATCH_INPUTS
from hltnode.processing.framework.collections import U32, Bound, Collection, Column, Placement, Role
from hltnode.processing.framework.declaration import Algorithm, AlgorithmSequence, Grid
from hltnode.processing.framework.limits import BatchLimits

ARENA_ALIGNMENT = 256
"""Alignment in bytes; equal to that of CUDA's allocator."""
CACHE_LINE = 64
THREAD_ALIGNMENT = CACHE_LINE
"""Alignment in bytes; a cache line."""
TAIL = 64
"""Bytes after the last column: kernels may read, but not use, a vector beyond the last object."""

Retain = Iterable[str] | Literal["all"]


@dataclass(frozen=True, slots=True)
class Region:
    """Memory of one column: bytes `offset` to `offset + nbytes`, in use from step `first` to step `last`."""

    column: Column
    offset: int
    nbytes: int
    first: int
    last: int


@dataclass(frozen=True, slots=True)
class Area:
    """Columns that share one block of memory."""

    regions: tuple[Region, ...]
    nbytes: int

    def region(self, name: str) -> Region | None:
        """The region of a column, None if it is elsewhere."""
        return next((region for region in self.regions if region.column.name == name), None)

    def alive(self, step: int) -> tuple[Region, ...]:
        """Regions in use at a step."""
        return tuple(region for region in self.regions if region.first <= step <= region.last)


@dataclass(frozen=True, slots=True)
class SlotMemory:
    """Bytes of one slot: on the device, pinned on the host for transfer, and per worker thread.

    On the CPU, host and device are the same; transferred columns count only as pinned. Output lists are pinned on the
    host and have no memory on a device.
    """

    device: int
    pinned: int
    thread: int
    per_event: int


@dataclass(frozen=True, kw_only=True)
class MemoryPlan:
    """Places of the columns of a sequence.

    mirrors: transferred columns, each in its own memory. mapped: columns on the host that kernels write. accumulated:
    counters, which are transferred as a whole; on a CPU each thread has its own. arena: columns that only kernels use,
    one block per workspace. thread: one block per worker thread. stages: the algorithms of each step of the arena.
    """

    sequence: AlgorithmSequence
    limits: BatchLimits
    fuse_events: bool
    mirrors: tuple[Column, ...]
    mapped: tuple[Column, ...]
    accumulated: tuple[Column, ...]
    constants: tuple[Column, ...]
    arena: Area
    thread: Area
    stages: tuple[tuple[Algorithm, ...], ...]
    retained: frozenset[str]

    @property
    def mirror_bytes(self) -> int:
        """Bytes of all transferred columns."""
        mirrors = sum(column.nbytes(self.limits) for column in self.mirrors)
        return mirrors + sum(self.copy_bytes(column) for column in self.accumulated)

    @property
    def mapped_bytes(self) -> int:
        """Bytes of output lists on the host; a batch writes only those of its elements."""
        return sum(column.nbytes(self.limits) for column in self.mapped)

    def copy_bytes(self, column: Column) -> int:
        """Bytes of one copy of accumulated counters: whole cache lines, so that no two threads write to one line."""
        return -(-column.nbytes(self.limits) // CACHE_LINE) * CACHE_LINE

    @property
    def slot_bytes(self) -> int:
        """Bytes of one slot on the device, without the memory of threads; on a CPU with output lists."""
        return self.arena.nbytes + self.mirror_bytes + (self.mapped_bytes if self.fuse_events else 0)

    @property
    def constant_bytes(self) -> int:
        """Bytes that all slots share."""
        return sum(column.nbytes(self.limits) for column in self.constants)

    @property
    def memory(self) -> SlotMemory:
        """The bytes of a slot by kind."""
        return SlotMemory(
            device=self.arena.nbytes + (0 if self.fuse_events else self.mirror_bytes),
            pinned=self.mirror_bytes + self.mapped_bytes,
            thread=self.thread.nbytes,
            per_event=-(-self.slot_bytes // self.limits.events),
        )

    @property
    def readable(self) -> frozenset[str]:
        """Names of the columns with valid content after a batch."""
        kept = {column.name for column in (*self.mirrors, *self.mapped, *self.constants)}
        return frozenset(kept | self.retained)

    @cached_property
    def bytes_by_algorithm(self) -> Mapping[str, int]:
        """Bytes of the arena in use during each algorithm, in the order of the sequence."""
        return {
            algorithm.name: sum(region.nbytes for region in self.arena.alive(step))
            for step, stage in enumerate(self.stages)
            for algorithm in stage
        }

    @property
    def peak(self) -> tuple[str, tuple[Region, ...]]:
        """The first algorithm with the maximum use of the arena, and its used regions."""
        steps = {algorithm.name: step for step, stage in enumerate(self.stages) for algorithm in stage}
        name = max(self.bytes_by_algorithm, key=lambda algorithm: self.bytes_by_algorithm[algorithm])
        return name, self.arena.alive(steps[name])

    def total_bytes(self, slots: int, threads: int) -> int:
        """Bytes of a number of slots and worker threads, without constants."""
        return slots * self.slot_bytes + threads * self.thread.nbytes


def plan_memory(
    sequence: AlgorithmSequence, limits: BatchLimits, *, retain: Retain = (), fuse_events: bool
) -> MemoryPlan:
    """Plan the memory of a sequence.

    retain: names of columns that must keep their content until the batch is done, or "all".
    fuse_events: whether the back end runs several algorithms on one event before the next event. Raises
    DeclarationError for a name in `retain` that the sequence does not have.
    """
    columns = dict.fromkeys((*BATCH_INPUTS, *sequence.columns))
    names = [column.name for column in columns] if retain == "all" else list(retain)
    known = {column.name for column in columns}
    retained = frozenset(name if name in known else sequence.column(name).name for name in names)
    arena_columns = [column for column in columns if column.role is Role.ARENA]
    stages = _stages(sequence, fuse_events=fuse_events)
    stage_of = {algorithm.name: step for step, stage in enumerate(stages) for algorithm in stage}
    users = _users(sequence)

    thread_columns = {
        column
        for column in arena_columns
        if fuse_events and column.name not in retained and _belongs_to_thread(column, users, stage_of)
    }
    arena, thread = [], []
    order = {algorithm.name: index for index, algorithm in enumerate(sequence)}
    for column in arena_columns:
        steps = order if column in thread_columns else stage_of
        used = [steps[algorithm.name] for algorithm in users[column]]
        if column in thread_columns:
            grid = users[column][0].grid
            thread.append(Region(column, 0, thread_bytes(column, limits, grid), min(used), max(used)))
        else:
            last = len(stages) - 1 if column.name in retained else max(used)
            arena.append(Region(column, 0, column.nbytes(limits), min(used), last))
    return MemoryPlan(
        sequence=sequence,
        limits=limits,
        fuse_events=fuse_events,
        mirrors=tuple(column for column in columns if column.role & (Role.INPUT | Role.OUTPUT)),
        mapped=tuple(column for column in columns if column.role is Role.MAPPED),
        accumulated=tuple(column for column in columns if column.role is Role.ACCUMULATED),
        constants=tuple(column for column in columns if column.role & Role.CONSTANT),
        arena=_share(arena, ARENA_ALIGNMENT),
        thread=_share(thread, THREAD_ALIGNMENT),
        stages=stages,
        retained=retained,
    )


def thread_placement(column: Column, grid: Grid) -> Placement:
    """Start of the content for each event or part of the grid, in elements, in a column that may be thread memory."""
    if column.collection is None or not column.is_placed:
        placement = Placement.fixed(column.width)
    else:
        assert column.collection.placement is not None
        placement = column.collection.placement
        placement = replace(placement, times=placement.times * column.width)
    return replace(placement, per_event=placement.per_event * _parts_of_block(column, grid))


def thread_bytes(column: Column, limits: BatchLimits, grid: Grid) -> int:
    """Bytes of the content for one event or part of the grid."""
    parts = _parts_of_block(column, grid)
    if column.collection is None or not column.is_placed:
        return parts * column.width * column.dtype.itemsize
    most = _max_objects(column.collection)
    assert most is not None
    most = most(limits) if callable(most) else most
    return min(parts * most, column.bound(limits)) * column.width * column.dtype.itemsize


def _max_objects(collection: Collection) -> int | Bound | None:
    """Maximum number of objects of an event, or of a part if the collection has parts."""
    return collection.max_per_event if collection.parts is None else collection.max_per_part


def _parts_of_block(column: Column, grid: Grid) -> int:
    """Number of parts of a column that belong to one block: those of the event for a kernel over events."""
    return column.parts or 1 if grid is Grid.EVENTS else 1


def _stages(sequence: AlgorithmSequence, *, fuse_events: bool) -> tuple[tuple[Algorithm, ...], ...]:
    """The algorithms by steps: algorithms of one step run at the same time on different events."""
    if not fuse_events:
        return tuple((algorithm,) for algorithm in sequence)
    stages: list[list[Algorithm]] = []
    for algorithm in sequence:
        if stages and _fuse(stages[-1][0], algorithm):
            stages[-1].append(algorithm)
        else:
            stages.append([algorithm])
    return tuple(tuple(stage) for stage in stages)


def _fuse(first: Algorithm, other: Algorithm) -> bool:
    """True if a thread may compute both on one event or part before the next one; Step.fuses_with in cpu_executor.cpp
    is the same."""
    if first.grid not in (Grid.EVENTS, Grid.PARTS) or other.after_all_parts:
        return False
    return (first.grid, first.parts, first.part_sizes) == (other.grid, other.parts, other.part_sizes)


def _users(sequence: AlgorithmSequence) -> dict[Column, list[Algorithm]]:
    users: dict[Column, list[Algorithm]] = {}
    for algorithm in sequence:
        for column in algorithm.columns:
            users.setdefault(column, []).append(algorithm)
    return users


def _belongs_to_thread(
    column: Column, users: Mapping[Column, Sequence[Algorithm]], stage_of: Mapping[str, int]
) -> bool:
    """True if only one fused stage uses a column, and the place for each event or part is known before the stage."""
    stages = {stage_of[algorithm.name] for algorithm in users[column]}
    grid = users[column][0].grid
    if len(stages) != 1 or grid not in (Grid.EVENTS, Grid.PARTS):
        return False
    if grid is Grid.PARTS and column.parts != users[column][0].parts:
        return False  # several threads access it: it belongs to the whole event
    if not column.is_placed:
        return column.extra == 0 and (column.of_event or column.of_part)
    collection = column.collection
    if collection is None or collection.placement is None or _max_objects(collection) is None:
        return False
    offsets = collection.placement.offsets
    if offsets is None:
        return True
    if _parts_of_block(column, grid) > 1:
        return False  # the objects of an event are adjacent only if all parts have the same number of places
    written = stage_of[users[offsets][0].name] if offsets.role is Role.ARENA else -1
    return offsets.dtype == U32 and written < min(stages)


def _share(regions: Sequence[Region], alignment: int) -> Area:
    """Place regions so that none overlaps another one in use at the same step, each in the smallest gap that fits:
    largest first, or in the order of their first use, whichever needs less memory."""
    by_size = sorted(regions, key=lambda region: (-region.nbytes, region.first, region.column.name))
    by_use = sorted(regions, key=lambda region: (region.first, -region.nbytes, region.column.name))
    return min((_placed(regions, order, alignment) for order in (by_size, by_use)), key=lambda area: area.nbytes)


def _placed(regions: Sequence[Region], order: Sequence[Region], alignment: int) -> Area:
    """Place regions in this order; the area has them in their own one."""
    placed: list[Region] = []
    offset_of: dict[Column, int] = {}
    for region in order:
        others = [other for other in placed if other.first <= region.last and region.first <= other.last]
        offset = offset_of[region.column] = _best_gap(others, region.nbytes, alignment)
        placed.append(replace(region, offset=offset))
    laid = tuple(replace(region, offset=offset_of[region.column]) for region in regions)
    end = max((region.offset + region.nbytes for region in laid), default=0)
    return Area(laid, _aligned(end + TAIL, alignment) if laid else 0)


def _best_gap(others: Sequence[Region], nbytes: int, alignment: int) -> int:
    """Offset of the smallest gap between `others` that fits `nbytes`, or the offset after them."""
    best: tuple[int, int] | None = None
    end = 0
    for other in sorted(others, key=lambda region: region.offset):
        start = _aligned(end, alignment)
        gap = other.offset - start
        if gap >= nbytes and (best is None or gap < best[0]):
            best = gap, start
        end = max(end, other.offset + other.nbytes)
    return _aligned(end, alignment) if best is None else best[1]


def _aligned(nbytes: int, alignment: int) -> int:
    return -(-nbytes // alignment) * alignment
