"""What the reports of an event say of the objects that lines selected; a detector declares it for its collections."""

from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any

from hltnode.processing.framework.collections import Collection, Column
from hltnode.processing.selection.expressions.expression import Node, columns_of, number, recording
from hltnode.processing.selection.lines.inputs import Input

NO_HIT = 0xFFFF
"""In `Hits.numbers`: a place without a hit."""


@dataclass(frozen=True, slots=True)
class Hits:
    """Hits of an object.

    numbers: u16, those of each object, relative to the first hit of the event. ids: u32, channels of the hits. count:
    how many of the places have a hit, the first ones; None: those that are not NO_HIT. through: the number, in the same
    event, of the object to which they belong, None: to the object itself.
    """

    numbers: Column
    ids: Column
    count: Column | None = None
    through: Column | None = None

    @property
    def columns(self) -> tuple[Column, ...]:
        """What is read of them."""
        return tuple(c for c in (self.numbers, self.ids, self.count, self.through) if c is not None)


@dataclass(frozen=True, slots=True)
class Parts:
    """The objects that one is made of. numbers: those of each object, in the event; of: what they are."""

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

    class_id: u16 (protocol.raw_data.selection_reports.ClassId). numbers: at most 255 numbers of a candidate, what they
    mean depends on the class. An object has hits, or parts, or neither.
    """

    input: Input
    class_id: int
    numbers: Callable[[Any], Sequence[Any]]
    hits: tuple[Hits, ...] = ()
    parts: Parts | None = None

    @property
    def collection(self) -> Collection:
        """The objects are those of this collection."""
        assert self.input.collection is not None
        return self.input.collection

    @property
    def values(self) -> tuple[Node, ...]:
        """The numbers as operations."""
        with recording():
            return tuple(number(value, "a report") for value in self.numbers(self.input.candidate()))

    @property
    def columns(self) -> tuple[Column, ...]:
        """What is read of the objects."""
        columns = dict.fromkeys(columns_of(self.values))
        columns |= dict.fromkeys(column for hits in self.hits for column in hits.columns)
        return (*columns, *(() if self.parts is None else (self.parts.numbers,)))


Reports = Mapping[Collection, Reported]
"""What is reported of the objects of collections."""


def reports_of(reported: Iterable[Reported], columns: Iterable[Column]) -> Reports:
    """What a sequence with some columns can report. Objects whose parts cannot be reported cannot either; hits of a
    detector that it does not read are left out."""
    known = set(columns)
    found: dict[Collection, Reported] = {}
    for one in reported:
        made = replace(one, hits=tuple(hits for hits in one.hits if known.issuperset(hits.columns)))
        if known.issuperset(made.columns) and (made.parts is None or made.parts.collection in found):
            found[made.collection] = made
    return found


def with_parts(collections: Iterable[Collection], reports: Reports) -> list[Reported]:
    """The reports of collections and of what their objects are made of, parts behind what they are parts of."""
    found: dict[Collection, Reported] = {}
    waiting = [collection for collection in collections if collection in reports]
    while waiting:
        collection = waiting.pop(0)
        one = reports[collection]
        found.pop(collection, None)
        found[collection] = one
        if one.parts is not None:
            waiting.append(one.parts.collection)
    return list(found.values())
