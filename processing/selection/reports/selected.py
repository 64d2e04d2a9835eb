"""The selected objects of an accepted event in 32-bit words: the kernel of the lines writes them for the reports.

    word                         content
    0                            number of candidates | number of objects << 16
    1                            number of candidates omitted because of the limits below
    2 ...                        the objects in order: class id | numbers << 16, ids | parts << 16,
                                 then the numbers (f32), the ids, the parts (object numbers in the event)
    n - 1 - k                    candidate k of a row of n words: line | object << 16

Only accepted events have a row. Candidates ascend by line, then by their number in the event. An object that several
lines select, or that is part of several others, is written once. The first candidate that does not fit is omitted with
all following ones; the event then has the flag CANDIDATES_LEFT_OUT, and its decisions stay valid.
"""

from functools import cache

from hltnode.processing.framework.collections import U32, Collection, Column, Placement
from hltnode.processing.framework.output_lists import WORDS, ListValue, OutputList

SELECTED_WORDS = 2048
"""Largest row, unless a chain sets another one. A long track has about 33 words, so 60 tracks and their vertices
fit."""
MAX_OBJECTS = 128
MAX_CANDIDATES_OF_LINE = 32
"""This limit leaves room for other lines if one line selects everything; decision reports count to 15."""
HEADER_WORDS = 2
OBJECT_WORDS = 2
"""Number of words before the numbers of an object."""


@cache
def selected_list(max_words: int) -> OutputList:
    """The list of the rows; a row has up to `max_words` words."""
    collection = Collection(
        "selected",
        capacity=lambda limits: limits.events * max_words,
        placement=Placement.fixed(max_words),
        max_per_event=max_words,
    )
    words = ListValue(column=collection.column("words", U32), text="words of the selected objects")
    return OutputList(
        name="selected",
        text="selected objects of accepted events",
        count=collection.per_event("count", U32),
        values={WORDS: words},
    )


def words_of(selected: OutputList) -> Column:
    """The rows, before they are delivered."""
    return selected.values[WORDS].column


def max_words(selected: OutputList) -> int:
    """The largest row."""
    words = selected.collection.max_per_event
    assert isinstance(words, int)
    return words
