"""What the lines selected in an accepted event, in words of 32 bits: the kernel of the lines writes it, the reports are
made of it.

    word                         content
    0                            number of candidates | number of objects << 16
    1                            candidates that are left out, because of the bounds below
    2 ...                        the objects, one behind the other: class id | numbers << 16, ids | parts << 16,
                                 then the numbers (f32), the ids, the parts (which objects of the event they are)
    SELECTED_WORDS - 1 - k       candidate k: line | object << 16

Candidates ascend by line, then by their number in the event. An object that several lines select, or that is part of
several others, is there once. The first candidate that does not fit is left out with all that follow; the event has the
flag CANDIDATES_LEFT_OUT then, and its decisions hold.
"""

from hltnode.processing.framework.batch import events
from hltnode.processing.framework.collections import U32, Role

SELECTED_WORDS = 2048
"""A long track has about 33 words: 60 of them fit, and their vertices."""
MAX_OBJECTS = 128
MAX_CANDIDATES_OF_LINE = 32
"""So that a line that selects everything leaves room for the others; decision reports count to 15."""
HEADER_WORDS = 2
OBJECT_WORDS = 2
"""In front of the numbers of an object."""

selected = events.per_event("selected", U32, width=SELECTED_WORDS, role=Role.OUTPUT)
"""[event][2048]; of accepted events only."""
