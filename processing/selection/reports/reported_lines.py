"""Lines with reported candidates, and the scratch memory for each object."""

from collections.abc import Sequence
from dataclasses import dataclass

from hltnode.processing.framework.collections import U16, U32, Collection, Column
from hltnode.processing.framework.declaration import Scratch
from hltnode.processing.selection.lines.line import Line
from hltnode.processing.selection.reports.reported import Reported, Reports, with_parts


def lines_name(collection: Collection) -> str:
    """Name of the scratch memory with the lines that select each object."""
    return f"{collection.name}_lines"


def object_name(collection: Collection) -> str:
    """Name of the scratch memory with the number of each object in the report."""
    return f"{collection.name}_object"


@dataclass(frozen=True, slots=True)
class Group:
    """The lines on one collection: their places in the menu, and the decision words that contain them."""

    collection: Collection
    count: Column
    places: tuple[int, ...]

    @property
    def first_word(self) -> int:
        """The first of these words."""
        return self.places[0] // 32

    @property
    def n_words(self) -> int:
        """Number of words from the first to the last."""
        return self.places[-1] // 32 + 1 - self.first_word

    def mask(self, word: int) -> int:
        """Bit mask of the group's lines in a word."""
        return sum(1 << place % 32 for place in self.places if place // 32 == word)


class ReportedLines:
    """The lines with reported candidates, and their reports."""

    def __init__(self, lines: Sequence[Line], reports: Reports) -> None:
        self.groups: dict[Collection, Group] = {}
        for place, line in enumerate(lines):
            if (variable := line.variable) is None or variable.collection not in reports:
                continue
            before = self.groups.get(variable.collection)
            if before is not None and before.count is not variable.count:
                continue  # The lines before have other objects.
            places = (place,) if before is None else (*before.places, place)
            self.groups[variable.collection] = Group(variable.collection, variable.count, places)
        self.reported: tuple[Reported, ...] = tuple(with_parts(self.groups, reports))
        """The reports, parts after their wholes."""

    @property
    def columns(self) -> tuple[Column, ...]:
        """The distinct columns that are read for selected objects."""
        return tuple(dict.fromkeys(column for one in self.reported for column in one.columns))

    @property
    def scratch(self) -> tuple[Scratch, ...]:
        """Scratch memory for each object of the collections."""
        return (
            *(
                Scratch(lines_name(group.collection), U32, group.collection, group.n_words)
                for group in self.groups.values()
            ),
            *(Scratch(object_name(one.collection), U16, one.collection) for one in self.reported),
        )

    def index(self, collection: Collection) -> int:
        """Index of a collection in `reported`."""
        return [one.collection for one in self.reported].index(collection)

    def objects_of(self, collection: Collection) -> int:
        """Number of objects of a candidate, constituents included."""
        parts = self.reported[self.index(collection)].parts
        return 1 + sum(each.numbers.width * self.objects_of(each.collection) for each in parts)
