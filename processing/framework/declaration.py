"""Declaration of an algorithm: its kernel, the columns that it reads and writes, its constants.

`X.py` beside `X.cuh` is one algorithm. A sequence is a list of algorithms. The declarations determine the places and
sizes of columns, the C++ parameter structs and the pointers of each kernel.
"""

from collections.abc import Callable, Container, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from enum import IntEnum
from pathlib import Path
from typing import Any, Self

import numpy as np
from numpy.typing import NDArray

from hltnode.processing.framework.batch import batch_header
from hltnode.processing.framework.collections import (
    U32,
    Bound,
    Collection,
    Column,
    DeclarationError,
    Role,
    SharedTypes,
    View,
)

MAX_BLOCK_SIZE = 256
"""Maximum block size of a launch; shared scratch arrays have this size."""


class Grid(IntEnum):
    """Range of the blocks of a kernel.

    ONE: one block for the batch. ROWS: one for each MFP. FRAGMENTS: one for each MFP and event.
    EVENTS: one for each event. PARTS: one for each part of each event; block event * parts + part.

    A kernel over EVENTS accesses only the data of its event, and adds to accumulated counters. A kernel over PARTS
    writes the data of its part, and adds to accumulated counters. It reads the data of its event that other grids have
    written, and those of its part, or, with `after_all_parts`, of all parts. Threads of a CPU may
    compute other parts of the event at the same time: what parts share in the event (its flags, for example) changes
    only through the functions of framework/device/between_blocks.cuh.
    """

    ONE = 0
    ROWS = 1
    EVENTS = 2
    PARTS = 3
    FRAGMENTS = 4


launch_types = SharedTypes(
    __file__, "launch_types", enums={"grid": Grid}, scoped=("grid",), sizes={"max_block_size": MAX_BLOCK_SIZE}
)


@dataclass(frozen=True, slots=True)
class Constant:
    """A 4-byte kernel parameter. `value` is a float or an int (unsigned unless negative).

    allowed: the values that a configuration may set, None for any. added: the constant is younger than its algorithm;
    the content of a TCK leaves it out at this value, so that keys of configurations without it stay. shared: all
    algorithms of a sequence that share a constant of this name need the same value.
    """

    name: str
    value: float | int
    allowed: range | None = None
    added: float | int | None = None
    shared: bool = False

    def packed(self) -> np.uint32:
        """The bits of the value."""
        if isinstance(self.value, float):
            return np.float32(self.value).view(np.uint32)
        return np.int64(self.value).astype(np.uint32)


@dataclass(frozen=True, slots=True)
class Capacity:
    """Number of elements that fit, as a 32-bit word, so that a kernel can respect it. Not part of the TCK."""

    name: str
    count: Bound


@dataclass(frozen=True, slots=True)
class Scratch:
    """Memory of one algorithm: `width` elements for each object of a collection."""

    name: str
    dtype: np.dtype[Any]
    per: Collection
    width: int = 1


@dataclass(frozen=True, slots=True)
class LargeEvents:
    """Events that a GPU computes with larger blocks, in a launch of their own after all others.

    Blocks of one warp are best for a mean event. A much larger event would keep its block busy as long as all others of
    the batch together.
    """

    size: Column
    """Size of each event, u32, written before the kernel runs."""
    min_size: int
    block_size: int


MAX_EVENT_SIZE = 0xFFFFFFFF


@dataclass(frozen=True, slots=True)
class EventSizes:
    """A launch of a kernel: threads per block, and the range of event sizes."""

    block_size: int
    min_size: int = 0
    max_size: int = MAX_EVENT_SIZE


Access = Column | View


@dataclass(frozen=True, slots=True, eq=False)
class GeneratedKernel:
    """A kernel that is generated when an engine is made; the back end compiles it.

    includes, body: the source, which follows the parameter struct. `write` makes the body at each use; an engine needs
    it, but a check of a configuration does not. evaluate: the equivalent in NumPy, for a back end without compiler. It
    gets the content of every column and the number of events, and yields during the computation to show its progress.
    """

    includes: tuple[str, ...]
    write: Callable[[], str]
    evaluate: Callable[[Mapping[Column, NDArray[Any]], int], Iterator[None]]

    @property
    def body(self) -> str:
        """The source after the parameter struct."""
        return self.write()


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class Algorithm:
    """One kernel. `codegen.py` writes its parameter struct from this declaration.

    reads, updates, writes: columns, or views of several; columns that are only read are const for the kernel. Every
    kernel implicitly reads the batch header and the offsets of its collections.
    scratch: memory that no other algorithm uses.
    constants: values that a trigger configuration may change, with their defaults.
    parts: for a kernel over PARTS, the number of parts of each event. after_all_parts: the kernel begins when
    earlier ones have computed all parts, because it reads what they have written for other parts, or overwrites what
    they read. part_sizes: u32 for each part, written before the kernel runs; the threads of a CPU then take the parts
    with the largest sizes first.
    generated: the kernel, if it has no file.

    Raises DeclarationError if a column is named twice, and for parts that do not fit the grid.
    """

    name: str
    source: Path
    """The kernel file."""
    grid: Grid
    block_size: int
    reads: tuple[Access, ...] = ()
    updates: tuple[Column, ...] = ()
    writes: tuple[Column, ...] = ()
    scratch: tuple[Scratch, ...] = ()
    constants: tuple[Constant, ...] = ()
    capacities: tuple[Capacity, ...] = ()
    large_events: LargeEvents | None = None
    parts: int | None = None
    after_all_parts: bool = False
    part_sizes: Column | None = None
    generated: GeneratedKernel | None = None
    template: "Algorithm | None" = None
    """The algorithm whose kernel and parameter struct this one has, with other columns (`on`)."""
    of_template: Mapping[Column, Column] = field(default_factory=dict)
    """The columns of the template, and those in their place."""
    scratch_columns: tuple[Column, ...] = field(init=False)

    def __post_init__(self) -> None:
        columns = tuple(
            Column(
                name=f"{self.name}/{scratch.name}",
                dtype=scratch.dtype,
                bound=scratch.per.capacity,
                collection=scratch.per,
                width=scratch.width,
            )
            for scratch in self.scratch
        )
        object.__setattr__(self, "scratch_columns", columns)
        seen: set[str] = set()
        for column in (*self.named_reads, *self.updates, *self.writes):
            if column.name in seen:
                raise DeclarationError(f"{self.name} names {column.name} twice")
            seen.add(column.name)
        words = [c.name for c in self.constants] + [c.name for c in self.capacities] + [s.name for s in self.scratch]
        for word in words:
            if words.count(word) > 1:
                raise DeclarationError(f"{self.name} has two parameters named {word}")
        for launch in self.launches:
            if not 1 <= launch.block_size <= MAX_BLOCK_SIZE:
                raise DeclarationError(
                    f"{self.name}: blocks of {launch.block_size} threads, 1 to {MAX_BLOCK_SIZE} are allowed"
                )
        if self.large_events is not None and self.grid != Grid.EVENTS:
            raise DeclarationError(f"{self.name}: only a kernel over events can have a launch for large events")
        self._check_parts()

    def _check_parts(self) -> None:
        if self.grid is not Grid.PARTS:
            if self.parts is not None or self.part_sizes is not None or self.after_all_parts:
                raise DeclarationError(
                    f"{self.name}: only a kernel over parts can have `parts`, `after_all_parts` and `part_sizes`"
                )
            return
        if self.parts is None or self.parts < 1:
            raise DeclarationError(f"{self.name}: a kernel over parts needs their number, `parts`, at least 1")
        sizes = self.part_sizes
        if sizes is not None:
            if sizes.dtype != U32 or sizes.width != 1 or not sizes.of_part or sizes.parts != self.parts:
                raise DeclarationError(f"{self.name}: {sizes.name} is not a u32 for each of {self.parts} parts")
            if sizes in (*self.updates, *self.writes):
                raise DeclarationError(f"{self.name} writes {sizes.name}, by which its parts are ordered before")

    @classmethod
    def beside(
        cls,
        file: str,
        *,
        grid: Grid,
        block_size: int,
        reads: Sequence[Access] = (),
        updates: Sequence[Column] = (),
        writes: Sequence[Column] = (),
        scratch: Sequence[Scratch] = (),
        constants: Mapping[str, float | int] | None = None,
        allowed: Mapping[str, range] | None = None,
        added: Mapping[str, float | int] | None = None,
        shared: Container[str] = (),
        capacities: Mapping[str, Bound] | None = None,
        large_events: LargeEvents | None = None,
        parts: int | None = None,
        after_all_parts: bool = False,
        part_sizes: Column | None = None,
        prefix: str | None = None,
    ) -> Self:
        """The algorithm of the module `file`; its kernel is in a .cuh file of the same name beside it.

        constants: defaults by name; allowed: values by name, for constants that cannot have every value; added: more
        defaults by name, of constants that the content of a TCK leaves out at their default (Constant.added); shared:
        names of constants that other algorithms have too, with the same value (Constant.shared).
        Its name is `<prefix>_<module>`. The default prefix is the folder's name; an empty prefix is omitted.
        """
        source = Path(file).resolve().with_suffix(".cuh")
        prefix = source.parent.name if prefix is None else prefix
        return cls(
            name=f"{prefix}_{source.stem}" if prefix else source.stem,
            source=source,
            grid=grid,
            block_size=block_size,
            reads=tuple(reads),
            updates=tuple(updates),
            writes=tuple(writes),
            scratch=tuple(scratch),
            constants=tuple(
                Constant(name, value, (allowed or {}).get(name), (added or {}).get(name), name in shared)
                for name, value in {**(constants or {}), **(added or {})}.items()
            ),
            capacities=tuple(Capacity(name, count) for name, count in (capacities or {}).items()),
            large_events=large_events,
            parts=parts,
            after_all_parts=after_all_parts,
            part_sizes=part_sizes,
        )

    def n_blocks(self, *, events: int, rows: int, fragments: int) -> int:
        """Number of blocks for a batch with these numbers of events, MFPs and fragments."""
        match self.grid:
            case Grid.ONE:
                return 1
            case Grid.ROWS:
                return rows
            case Grid.FRAGMENTS:
                return fragments
            case Grid.EVENTS:
                return events
            case Grid.PARTS:
                assert self.parts is not None
                return events * self.parts

    def on(
        self,
        name: str,
        columns: Mapping[Column, Column],
        *,
        constants: Mapping[str, float | int] | None = None,
        capacities: Mapping[str, Bound] | None = None,
    ) -> Self:
        """This kernel on other columns, under another name: each named column is replaced by one of the same bytes.

        A column may replace several. Only for kernels without scratch memory, views, collections with a placement and
        launches for large events.
        """
        updates = tuple(columns[column] for column in self.updates)
        writes = tuple(columns[column] for column in self.writes)
        reads = dict.fromkeys(columns[column] for column in self.named_reads)
        values, bounds = constants or {}, capacities or {}
        return replace(
            self,
            name=name,
            reads=tuple(column for column in reads if column not in updates),
            updates=updates,
            writes=writes,
            constants=tuple(replace(c, value=values.get(c.name, c.value)) for c in self.constants),
            capacities=tuple(Capacity(c.name, bounds.get(c.name, c.count)) for c in self.capacities),
            template=self,
            of_template=columns,
        )

    @property
    def kernel(self) -> str:
        """The name of its kernel: its own, or that of its template."""
        return self.name if self.template is None else self.template.name

    @property
    def launches(self) -> tuple[EventSizes, ...]:
        """Launches of the kernel on a GPU: one for all events, or one for small and one for large events."""
        if self.large_events is None:
            return (EventSizes(self.block_size),)
        limit = self.large_events.min_size
        return (
            EventSizes(self.block_size, max_size=limit - 1),
            EventSizes(self.large_events.block_size, min_size=limit),
        )

    @property
    def header(self) -> Path:
        """The generated header with the struct of parameters."""
        return self.source.parent / "generated" / f"{self.name}.h"

    @property
    def cpu_form(self) -> Path | None:
        """The CPU form of the kernel, if it exists: `X_cpu.h` beside `X.cuh`."""
        form = self.source.with_name(f"{self.source.stem}_cpu.h")
        return form if self.generated is None and form.is_file() else None

    @property
    def named_reads(self) -> tuple[Column, ...]:
        """The columns of `reads`, those of views included."""
        columns: list[Column] = []
        for access in self.reads:
            columns += access.columns if isinstance(access, View) else (access,)
        return tuple(columns)

    @property
    def views(self) -> tuple[View, ...]:
        """The views among `reads`."""
        return tuple(access for access in self.reads if isinstance(access, View))

    @property
    def offset_columns(self) -> tuple[Column, ...]:
        """The columns that the kernel reads implicitly: offsets of its collections, and the sizes that select large
        events or order parts."""
        named = {*self.named_reads, *self.updates, *self.writes}
        offsets: dict[Column, None] = {}
        if self.large_events is not None and self.large_events.size not in named:
            offsets[self.large_events.size] = None
        if self.part_sizes is not None and self.part_sizes not in named:
            offsets[self.part_sizes] = None
        for column in (*self.named_reads, *self.updates, *self.writes, *self.scratch_columns):
            placement = None if column.collection is None or not column.is_placed else column.collection.placement
            if placement is not None and placement.offsets is not None and placement.offsets not in named:
                offsets[placement.offsets] = None
        return tuple(offsets)

    @property
    def all_reads(self) -> tuple[Column, ...]:
        """Every column that must be written before: the batch header, the named columns, and offsets."""
        return tuple(dict.fromkeys((batch_header, *self.named_reads, *self.offset_columns)))

    @property
    def columns(self) -> tuple[Column, ...]:
        """Every column that the kernel accesses, scratch included."""
        return (*self.all_reads, *self.updates, *self.writes, *self.scratch_columns)

    def with_constants(self, values: Mapping[str, float | int]) -> Self:
        """The same algorithm with other values of some constants."""
        constants = tuple(replace(c, value=values.get(c.name, c.value)) for c in self.constants)
        return replace(self, constants=constants)


@dataclass(frozen=True, slots=True)
class AlgorithmSequence:
    """Algorithms in the order in which they run.

    Raises DeclarationError for a column that is read before it is written, written by two algorithms, or declared
    twice under one name, and for two algorithms of one name.
    """

    algorithms: tuple[Algorithm, ...]
    columns: tuple[Column, ...] = field(init=False)

    def __post_init__(self) -> None:
        known: dict[str, Column] = {}
        writer: dict[str, str] = {}
        names: set[str] = set()
        for algorithm in self.algorithms:
            if algorithm.name in names:
                raise DeclarationError(f"two algorithms have the name {algorithm.name}")
            names.add(algorithm.name)
            for column in (*algorithm.all_reads, *algorithm.updates):
                if column.name not in known and not column.role & (Role.INPUT | Role.CONSTANT):
                    raise DeclarationError(f"{algorithm.name} reads {column.name}, which no earlier algorithm writes")
                if known.setdefault(column.name, column) is not column:
                    raise DeclarationError(f"{column.name} is declared twice; {algorithm.name} uses the second one")
            for column in (*algorithm.writes, *algorithm.scratch_columns):
                if column.name in known:
                    by = writer.get(column.name, "the host")
                    raise DeclarationError(f"{algorithm.name} writes {column.name}, which {by} already writes")
                known[column.name] = column
                writer[column.name] = algorithm.name
        object.__setattr__(self, "columns", tuple(known.values()))

    def __iter__(self) -> Iterator[Algorithm]:
        return iter(self.algorithms)

    def column(self, name: str) -> Column:
        """The column of this name. Raises DeclarationError, with similar names."""
        for column in self.columns:
            if column.name == name:
                return column
        group = name.partition(".")[0]
        alike = [column.name for column in self.columns if column.name.partition(".")[0] == group]
        raise DeclarationError(f"no column {name}; there are {', '.join(alike) or 'none of ' + group}")
