"""Lists as output: values of the objects of each event (tracks, components, windows), of any number per event.

A chain declares lists of its collections, placed in any way. After the last kernel of the sequence,
`processing/algorithms/deliver_lists.py` puts the elements of all events one after the other, in the order of events,
into pinned memory of the host. Only elements that exist cross the bus, and the host needs no number before the batch
has ended.
"""

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from itertools import pairwise
from typing import Any, Self

import numpy as np
from numpy.typing import NDArray

from hltnode.processing.framework.collections import U32, Bound, Collection, Column, DeclarationError, Role
from hltnode.processing.framework.limits import BatchLimits
from hltnode.protocol.value_lists import ListDescription

WORDS = "words"
"""The value of the list of selected candidates (selection/reports/selected.py)."""
OF_EVENT = ("run", "event", "accepted", "lines", "flags")
"""Names of results that every event has."""


def result_name(of: str, value: str) -> str:
    """The name of a value of list `of` among the results of an event: `lines` of the list `windows` is `windows_lines`.

    Other values keep their names.
    """
    return f"{of}_{value}" if value in OF_EVENT else value


@dataclass(frozen=True, slots=True, kw_only=True)
class ListValue:
    """One value of each element of a list.

    column: one element for each object of a collection. text: its meaning, for people. unit: empty without one.
    member: the field, for a column of records.
    """

    column: Column
    text: str
    unit: str = ""
    member: str = ""

    @property
    def dtype(self) -> np.dtype[Any]:
        """The type of the value."""
        return self.column.dtype[self.member] if self.member else self.column.dtype


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class OutputList:
    """A list of each event, with values of the objects of one collection.

    name, text: for results and for people. count: u32 per event, the number of objects, in adjacent places from the
    start of the event's part. values: by the names that results give them. capacity: elements of all events of a batch
    that are delivered; None: all that the collection can hold. Events come in order, so the first elements of a batch
    are delivered; an event with others has the flag LIST_LEFT_OUT.

    offsets, delivered: columns on the host, made here: u32 per event and one at the end, the prefix sum of delivered
    elements; and the elements of each column of `values`.

    Raises DeclarationError for names that are not identifiers in lower case, a count that is not u32 per event, no
    values, and values that are not single numbers of the objects of one placed collection.
    """

    name: str
    text: str
    count: Column
    values: Mapping[str, ListValue]
    capacity: Bound | None = None
    offsets: Column = field(init=False)
    delivered: Mapping[Column, Column] = field(init=False)

    def __post_init__(self) -> None:
        for name in (self.name, *self.values):
            if not name.isidentifier() or name != name.lower():
                raise DeclarationError(f"list {self.name!r}: {name!r} is not a name in lower case")
        if self.count.dtype != U32 or not self.count.of_event or self.count.width != 1:
            raise DeclarationError(f"list {self.name}: its count {self.count.name} is not a u32 per event")
        if not self.values:
            raise DeclarationError(f"list {self.name} has no values")
        for name, value in self.values.items():
            self._check(name, value)
        offsets = Column(
            name=f"delivered_{self.name}.offset", dtype=U32, bound=_events, extra=1, of_event=True, role=Role.OUTPUT
        )
        columns = {
            column: Column(
                name=f"delivered_{self.name}.{column.short_name}",
                dtype=column.dtype,
                record=column.record,
                bound=self.bound,
                role=Role.MAPPED,
            )
            for column in dict.fromkeys(value.column for value in self.values.values())
        }
        object.__setattr__(self, "offsets", offsets)
        object.__setattr__(self, "delivered", columns)

    def _check(self, name: str, value: ListValue) -> None:
        column, what = value.column, f"list {self.name}: value {name}"
        # A list has the objects of an event: of a collection with parts, another algorithm must join them first.
        placed_by_event = column.is_placed and column.collection is not None and column.collection.parts is None
        if not placed_by_event or column.collection is None or column.collection.placement is None:
            raise DeclarationError(f"{what}: {column.name} has no place for the objects of an event")
        if column.collection is not self.collection:
            raise DeclarationError(f"{what}: {column.name} is not of collection {self.collection.name}")
        if column.width != 1:
            raise DeclarationError(f"{what}: {column.name} has {column.width} elements for each object, expected 1")
        if value.member not in (column.dtype.names or ("",)) or value.dtype.shape or value.dtype.names:
            raise DeclarationError(f"{what}: {value.member!r} is not a number of {column.name}")

    @property
    def collection(self) -> Collection:
        """The collection of its objects."""
        collection = next(iter(self.values.values())).column.collection
        assert collection is not None
        return collection

    @property
    def bound(self) -> Bound:
        """The number of elements of a batch that are delivered."""
        return self.collection.capacity if self.capacity is None else self.capacity

    @property
    def columns(self) -> tuple[Column, ...]:
        """The columns that it reads."""
        return (self.count, *dict.fromkeys(value.column for value in self.values.values()))

    @property
    def description(self) -> ListDescription:
        """The names and types of its values, for messages and banks."""
        return ListDescription(self.name, {name: value.dtype.str[1:] for name, value in self.values.items()})

    def empty(self, n_events: int) -> "ListContent":
        """The list of events without elements."""
        values = {name: np.zeros(0, value.dtype) for name, value in self.values.items()}
        return ListContent(np.zeros(n_events + 1, np.uint32), values)

    def content(self, offsets: NDArray[np.uint32], delivered: Mapping[Column, NDArray[Any]]) -> "ListContent":
        """The values, given the content of `offsets` up to the last event, and that of the columns of `delivered`."""
        n = int(offsets[-1])
        values: dict[str, NDArray[Any]] = {}
        for name, value in self.values.items():
            elements = delivered[self.delivered[value.column]][:n]
            values[name] = elements[value.member] if value.member else elements
        return ListContent(offsets, values)


@dataclass(frozen=True, slots=True)
class ListContent:
    """A list of n events.

    offsets: u32[n + 1], the first element of each event, and the number of all. values: for each value one element of
    each object, events in order.
    """

    offsets: NDArray[np.uint32]
    values: Mapping[str, NDArray[Any]]

    @property
    def counts(self) -> NDArray[np.int64]:
        """i64[n], the number of elements of each event."""
        return self.offsets[1:].astype(np.int64) - self.offsets[:-1]

    def of_events(self, name: str) -> Iterator[NDArray[Any]]:
        """The elements of one value, for each event."""
        ends = self.offsets.tolist()
        values = self.values[name]
        return (values[begin:end] for begin, end in pairwise(ends))

    def part(self, first: int, last: int) -> Self:
        """The events `first` to `last` - 1."""
        begin, end = int(self.offsets[first]), int(self.offsets[last])
        offsets = self.offsets[first : last + 1] - self.offsets[first]
        return type(self)(offsets, {name: values[begin:end] for name, values in self.values.items()})

    def of_rows(self, rows: NDArray[np.bool_]) -> Self:
        """The events with a mark."""
        offsets = np.concatenate(([0], np.cumsum(self.counts[rows]))).astype(np.uint32)
        elements = np.repeat(rows, self.counts)
        return type(self)(offsets, {name: values[: len(elements)][elements] for name, values in self.values.items()})

    def copy(self) -> Self:
        """A copy that stays valid."""
        return type(self)(self.offsets.copy(), {name: values.copy() for name, values in self.values.items()})


def joined_lists(parts: Sequence[ListContent]) -> ListContent:
    """The lists of consecutive events as one. `parts` is not empty and has the same values."""
    counts = np.concatenate([part.counts for part in parts])
    offsets = np.r_[0, np.cumsum(counts)].astype(np.uint32)
    names = parts[0].values
    return ListContent(offsets, {name: np.concatenate([part.values[name] for part in parts]) for name in names})


def no_words(n_events: int) -> ListContent:
    """A list of u32 words without elements."""
    return ListContent(np.zeros(n_events + 1, np.uint32), {WORDS: np.zeros(0, np.uint32)})


def _events(limits: BatchLimits) -> int:
    return limits.events
