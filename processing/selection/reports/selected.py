"""The selected objects of an accepted event in 32-bit words: the kernel of the lines writes them for the reports.

    word                         content
    0                            number of candidates | number of objects << 16
    1                            number of candidates omitted because of the limits below
    2 ...                        the objects in order: class id | numbers << 16, ids | parts << 16,
                                 then the numbers (f32), the ids, the parts (object numbers in the event)
    SELECTED_WORDS - 1 - k       candidate k: line | object << 16

Candidates ascend by line, then by their number in the event. An object that several lines select, or that is part of
several others, is written once. The first candidate that does not fit is omitted with all following ones; the event
then has the flag CANDIDATES_LEFT_OUT, and its decisions stay valid.
"""

from hltnode.processing.framework.batch import events
from hltnode.processing.framework.collections import U32, Role

SELECTED_WORDS = 2048
"""Words per event. A long track has about 33 words, so 60 tracks and their vertices fit."""
MAX_OBJECTS = 128
MAX_CANDIDATES_OF_LINE = 32
"""This limit leaves room for other lines if one line selects everything; decision reports count to 15."""
HEADER_WORDS = 2
OBJECT_WORDS = 2
"""Number of words before the numbers of an object."""

selected = events.per_event("selected", U32, width=SELECTED_WORDS, role=Role.OUTPUT)
"""[event][2048]; only for accepted events."""
