"""The numbers of the line types of LHCb, in both languages."""

from enum import IntEnum

from hltnode.processing.framework.collections import SharedTypes


class LineKind(IntEnum):
    """What a line looks at; NONE is an unused place of the table."""

    NONE = 0
    PASSTHROUGH = 1
    VELO_MICRO_BIAS = 2
    N_DISPLACED_VELO_TRACKS = 3
    ODIN_EVENT_TYPE = 4


line_types = SharedTypes(__file__, "line_types", enums={"line_kind": LineKind}, scoped=("line_kind",))
