"""Data of kernels: columns of memory, and their collections.

A collection is a set of objects of every event of a batch (hits, tracks, vertices). It defines the maximum number of
objects of a batch and the start of each event's part, for Python and for kernels (`codegen.py` writes the same rule in
C++). A column is one array of a collection. This module also declares record layouts, enumerations and sizes, once for
both languages.
"""

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from enum import Flag, IntEnum, IntFlag, auto
from pathlib import Path
from typing import Any, Self

import numpy as np
from numpy.typing import NDArray

from hltnode.processing.framework.flags import ChainFlag
from hltnode.processing.framework.limits import BatchLimits

Bound = Callable[[BatchLimits], int]

PROCESSING = Path(__file__).resolve().parents[1]
"""The folder `processing`, the root of includes of kernel sources."""

F32 = np.dtype("<f4")
I16 = np.dtype("<i2")
I32 = np.dtype("<i4")
U8 = np.dtype("u1")
U16 = np.dtype("<u2")
U32 = np.dtype("<u4")
U64 = np.dtype("<u8")

C_TYPES = {
    F32: "float",
    I16: "int16_t",
    I32: "int32_t",
    U8: "uint8_t",
    U16: "uint16_t",
    U32: "uint32_t",
    U64: "uint64_t",
}


class DeclarationError(ValueError):
    """A declaration contradicts itself or another one; the message names algorithm and column."""


class Role(Flag):
    """Transfer of the content of a column to and from the device."""

    ARENA = 0
    """Only kernels write and read it."""
    INPUT = auto()
    """Copied to the device at the start of a batch."""
    OUTPUT = auto()
    """Copied to the host at the end of a batch."""
    CONSTANT = auto()
    """Written once, when the engine starts."""
    MAPPED = auto()
    """In pinned memory of the host, which kernels write directly: only written bytes cross the bus, without a copy."""
    ACCUMULATED = auto()
    """Counters to which kernels add, over events and batches. Each thread of a CPU has its own counters."""


@dataclass(frozen=True, slots=True)
class Record:
    """A struct for both languages: its C++ name in namespace hlt, and its layout.

    `comments` are the meanings and units of fields, for the generated header. Raises DeclarationError for a layout that
    a C++ compiler would pad.
    """

    name: str
    dtype: np.dtype[np.void]
    comments: Mapping[str, str] = field(default_factory=dict, hash=False)

    def __post_init__(self) -> None:
        assert self.dtype.names is not None
        unknown = set(self.comments) - set(self.dtype.names)
        if unknown:
            raise DeclarationError(f"record {self.name}: comments on {sorted(unknown)}, which are not fields")
        if not np.dtype(self.dtype.descr, align=True) == self.dtype:
            raise DeclarationError(f"record {self.name}: a C++ compiler would pad it")


@dataclass(frozen=True, slots=True)
class Placement:
    """Start of the objects of each event in the columns of a collection: the first element is

        first(event) = (begin(event) // divisor + event * per_event) * times

    with begin(event) from `offsets`, a column of prefix sums, or 0 without one. In a collection with parts, the number
    of the part in the batch, event * parts + part, takes the place of `event`.
    """

    offsets: "Column | None" = None
    divisor: int = 1
    per_event: int = 0
    times: int = 1

    def first(self, offsets: NDArray[np.integer[Any]] | None, n: int) -> NDArray[np.int64]:
        """i64[n], the first element of each event or part; `offsets` is the content of the column of that name."""
        begin = np.zeros(n, np.int64) if offsets is None else offsets[:n].astype(np.int64)
        return (begin // self.divisor + np.arange(n, dtype=np.int64) * self.per_event) * self.times

    @classmethod
    def fixed(cls, n: int) -> Self:
        """The same number of elements for every event, or for every part."""
        return cls(per_event=1, times=n)


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class Column:
    """An array of `dtype` with `count(limits)` elements, identified by its name, `<collection>.<column>`.

    A column without collection has only its own name. `width` elements belong to each object of the collection;
    With `of_event` the column has `width` elements per event instead, with `of_part` `width` elements per part of an
    event, and `extra` at the end.
    """

    name: str
    dtype: np.dtype[Any]
    bound: Bound
    collection: "Collection | None" = None
    record: Record | None = None
    width: int = 1
    extra: int = 0
    of_event: bool = False
    of_part: bool = False
    role: Role = Role.ARENA

    @property
    def is_placed(self) -> bool:
        """Whether its elements belong to objects, which the placement of the collection finds."""
        return self.collection is not None and not self.of_event and not self.of_part

    @property
    def parts(self) -> int | None:
        """Number of parts per event, if its elements belong to parts or to the objects of parts; else None."""
        return None if self.collection is None or self.of_event else self.collection.parts

    @property
    def short_name(self) -> str:
        """The name within its collection."""
        return self.name.rpartition(".")[2]

    def count(self, limits: BatchLimits) -> int:
        """Number of elements in a batch of these limits."""
        return self.width * self.bound(limits) + self.extra

    def nbytes(self, limits: BatchLimits) -> int:
        """Number of bytes in a batch of these limits."""
        return int(self.dtype.itemsize) * self.count(limits)

    def __repr__(self) -> str:
        return f"<column {self.name}>"


class Collection:
    """Objects of all events of a batch, adjacent: at most `capacity`; the objects of an event start at `placement`.

    `max_per_event` limits the objects of one event (free places after them included); None: the capacity. It may depend
    on the limits, like the capacity.

    With `parts`, each event has this number of parts (tiles, slices, rows), and the objects of a part are adjacent:
    `placement` gives the start of each part, and `max_per_part` limits its objects. Raises DeclarationError for less
    than one part, and for a limit of the other kind.
    """

    def __init__(
        self,
        name: str,
        *,
        capacity: Bound,
        placement: Placement | None = None,
        max_per_event: int | Bound | None = None,
        parts: int | None = None,
        max_per_part: int | None = None,
    ) -> None:
        if parts is not None and parts < 1:
            raise DeclarationError(f"collection {name}: {parts} parts per event")
        if (max_per_event if parts is not None else max_per_part) is not None:
            kind = "event" if parts is not None else "part"
            raise DeclarationError(f"collection {name}: max_per_{kind}, but its placement is not by {kind}")
        self.name = name
        self.capacity = capacity
        self.placement = placement
        self.max_per_event = max_per_event
        self.parts = parts
        self.max_per_part = max_per_part

    def column(self, name: str, dtype: np.dtype[Any] | Record, *, width: int = 1, role: Role = Role.ARENA) -> Column:
        """A column with `width` elements for each object."""
        record = dtype if isinstance(dtype, Record) else None
        return Column(
            name=f"{self.name}.{name}",
            dtype=record.dtype if record else dtype,  # type: ignore[arg-type]
            record=record,
            bound=self.capacity,
            collection=self,
            width=width,
            role=role,
        )

    def per_event(
        self,
        name: str,
        dtype: np.dtype[Any] | Record,
        *,
        width: int = 1,
        extra: int = 0,
        role: Role = Role.ARENA,
    ) -> Column:
        """A column with `width` elements for each event, and `extra` elements at the end (prefix sums need one)."""
        record = dtype if isinstance(dtype, Record) else None
        return Column(
            name=f"{self.name}.{name}",
            dtype=record.dtype if record else dtype,  # type: ignore[arg-type]
            record=record,
            bound=_events,
            collection=self,
            width=width,
            extra=extra,
            of_event=True,
            role=role,
        )

    def per_part(
        self,
        name: str,
        dtype: np.dtype[Any] | Record,
        *,
        width: int = 1,
        extra: int = 0,
        role: Role = Role.ARENA,
    ) -> Column:
        """A column with `width` elements for each part of each event, and `extra` elements at the end.

        Raises DeclarationError for a collection without parts.
        """
        if (parts := self.parts) is None:
            raise DeclarationError(f"collection {self.name} has no parts, so {name} cannot have a value for each")
        record = dtype if isinstance(dtype, Record) else None
        return Column(
            name=f"{self.name}.{name}",
            dtype=record.dtype if record else dtype,  # type: ignore[arg-type]
            record=record,
            bound=lambda limits: limits.events * parts,
            collection=self,
            width=width,
            extra=extra,
            of_part=True,
            role=role,
        )

    def __repr__(self) -> str:
        return f"<collection {self.name}>"


def _events(limits: BatchLimits) -> int:
    return limits.events


def constant_column(name: str, dtype: np.dtype[Any] | Record, bound: Bound = lambda _: 1) -> Column:
    """Memory that the engine writes once at its start: geometry, tables."""
    record = dtype if isinstance(dtype, Record) else None
    return Column(
        name=name,
        dtype=record.dtype if record else dtype,  # type: ignore[arg-type]
        record=record,
        bound=bound,
        role=Role.CONSTANT,
    )


@dataclass(frozen=True, slots=True)
class View:
    """Columns that several kernels read together; in C++ one struct hlt::<name>."""

    name: str
    columns: tuple[Column, ...]
    source: Path
    """The declaring module."""

    @property
    def path(self) -> Path:
        """Its generated header."""
        return self.source.parent / "generated" / f"{self.name}.h"


class SharedTypes:
    """Records, enumerations, sizes and flags of a folder, written to one generated header.

    Args:
        file: `__file__` of the declaring module; the header is `generated/<name>.h` beside it.
        enums: unscoped in C++, member names in lower case; those in `scoped` become `enum class`.
        sizes: constants, unsigned or float.
        flags: those that the chain adds to the flags of the framework.
    """

    def __init__(
        self,
        file: str,
        name: str,
        *,
        records: Sequence[Record] = (),
        enums: Mapping[str, type[IntEnum | IntFlag]] | None = None,
        scoped: Sequence[str] = (),
        sizes: Mapping[str, int | float] | None = None,
        flags: Sequence[ChainFlag] = (),
        uses: Sequence["SharedTypes"] = (),
    ) -> None:
        self.source = Path(file).resolve()
        self.path = self.source.parent / "generated" / f"{name}.h"
        self.records = tuple(records)
        self.enums = dict(enums or {})
        self.scoped = frozenset(scoped)
        self.sizes = dict(sizes or {})
        self.flags = tuple(flags)
        self.uses = tuple(uses)
        for record in self.records:
            _TYPES_OF_RECORD[record] = self


_TYPES_OF_RECORD: dict[Record, SharedTypes] = {}


def types_of(record: Record) -> SharedTypes:
    """The SharedTypes that declare a record. Raises DeclarationError if there are none."""
    try:
        return _TYPES_OF_RECORD[record]
    except KeyError:
        raise DeclarationError(f"no SharedTypes declare record {record.name}") from None
