"""Content of the reports about selected objects; a detector declares it for its collections."""

from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any

from hltnode.processing.framework.collections import Collection, Column
from hltnode.processing.selection.expressions.expression import number
from hltnode.processing.selection.expressions.nodes import Node, columns_of, recording
from hltnode.processing.selection.lines.inputs import Input

NO_HIT = 0xFFFF
"""Value of `Hits.numbers` for a place without a hit."""


@dataclass(frozen=True, slots=True)
class Hits:
    """Hits of an object.

    numbers: u16, hit numbers of each object, relative to the first hit of the event. ids: u32, channels of the hits.
    count: number of leading places with a hit; None: all places except NO_HIT. through: number, in the same event, of
    the object that owns the hits; None: the object itself.
    """

    numbers: Column
    ids: Column
    count: Column | None = None
    through: Column | None = None

    @property
    def columns(self) -> tuple[Column, ...]:
        """The columns that are read."""
        return tuple(c for c in (self.numbers, self.ids, self.count, self.through) if c is not None)


@dataclass(frozen=True, slots=True)
class Parts:
    """Constituents of an object. numbers: their numbers in the event; of: their input."""

    numbers: Column
    of: Input

    @property
    def collection(self) -> Collection:
        """The parts are objects of this collection."""
        assert self.of.collection is not None
        return self.of.collection


@dataclass(frozen=True, slots=True, kw_only=True)
class Reported:
    """The objects of the collection of an input.

    class_id: u16 (protocol.raw_data.selection_reports.ClassId). numbers: at most 255 numbers of a candidate; their
    meaning depends on the class. names: their names, for readers of the reports. An object has hits, or parts, or
    neither; parts may be of several inputs.
    """

    input: Input
    class_id: int
    numbers: Callable[[Any], Sequence[Any]]
    names: tuple[str, ...] = ()
    hits: tuple[Hits, ...] = ()
    parts: tuple[Parts, ...] = ()

    @property
    def collection(self) -> Collection:
        """The collection of the objects."""
        assert self.input.collection is not None
        return self.input.collection

    @property
    def values(self) -> tuple[Node, ...]:
        """The numbers as operations."""
        with recording():
            return tuple(number(value, "a report") for value in self.numbers(self.input.candidate()))

    @property
    def columns(self) -> tuple[Column, ...]:
        """The columns that are read for the objects."""
        columns = dict.fromkeys(columns_of(self.values))
        columns |= dict.fromkeys(column for hits in self.hits for column in hits.columns)
        return (*columns, *(parts.numbers for parts in self.parts))

    @property
    def n_parts(self) -> int:
        """Number of constituents of an object."""
        return sum(parts.numbers.width for parts in self.parts)


Reports = Mapping[Collection, Reported]
"""Report content by collection."""


def reports_of(reported: Iterable[Reported], columns: Iterable[Column]) -> Reports:
    """The reports that a sequence with some columns can make.

    An object needs all its parts; hits of a detector that the sequence does not read are omitted.
    """
    known = set(columns)
    found: dict[Collection, Reported] = {}
    for one in reported:
        made = replace(one, hits=tuple(hits for hits in one.hits if known.issuperset(hits.columns)))
        if known.issuperset(made.columns) and all(parts.collection in found for parts in made.parts):
            found[made.collection] = made
    return found


def with_parts(collections: Iterable[Collection], reports: Reports) -> list[Reported]:
    """The reports of collections and of their constituents, parts after their wholes."""
    found: dict[Collection, Reported] = {}
    waiting = [collection for collection in collections if collection in reports]
    while waiting:
        collection = waiting.pop(0)
        one = reports[collection]
        found.pop(collection, None)
        found[collection] = one
        waiting += [parts.collection for parts in one.parts]
    return list(found.values())
