"""Flags that this chain adds to those of the framework. Each sub-slice has its own; none affects another one."""

from hltnode.processing.framework.collections import SharedTypes
from hltnode.processing.framework.flags import ChainFlag, FlagKind

NO_HITS_BANK = ChainFlag(name="no_hits_bank", bit=16, text="The sub-slice has no bank of hits.")
BAD_HITS_BANK = ChainFlag(
    name="bad_hits_bank",
    bit=17,
    text="A bank of hits has an unknown type or version, or a part of a hit. Its hits are not used.",
)
TIME_OUTSIDE = ChainFlag(
    name="time_outside", bit=18, text="A hit has a time behind the end of its sub-slice. The other hits are used."
)
UNKNOWN_SENSOR = ChainFlag(
    name="unknown_sensor", bit=19, text="A hit has the number of no sensor of the detector. The other hits are used."
)
BAD_COLUMN = ChainFlag(
    name="bad_column", bit=20, text="A hit has a column that sensors do not have. The other hits are used."
)
BAD_ROW = ChainFlag(name="bad_row", bit=21, text="A hit has a row that sensors do not have. The other hits are used.")
TOO_MANY_HITS = ChainFlag(
    name="too_many_hits",
    bit=22,
    text="The sub-slice has more than 2,048 hits with those of its neighbours that its tracks need. None is used.",
)
REPEATED_HITS = ChainFlag(
    name="repeated_hits",
    bit=23,
    text="A pixel has several hits at the same time. One is used.",
    kind=FlagKind.NOTE,
)
TOO_MANY_TRIPLETS = ChainFlag(
    name="too_many_triplets",
    bit=24,
    text="More than 2,048 triplets of hits pass the geometric selection, or hits of layers 0, 1 and 2 have more than "
    "4,194,304 combinations within the time window. None is used.",
)
TOO_MANY_TRACKS = ChainFlag(name="too_many_tracks", bit=25, text="More than 512 triplets pass the fit. None is used.")
TOO_MANY_PAIRS = ChainFlag(
    name="too_many_pairs",
    bit=26,
    text="More than 1,024 pairs of an electron and a positron cross near the target. None is used.",
)
VERTICES_LEFT_OUT = ChainFlag(
    name="vertices_left_out",
    bit=27,
    text="The sub-slice has more than 32 vertices. The first 32 are listed; the window covers the sub-slice.",
    kind=FlagKind.NOTE,
)
WINDOWS_JOINED = ChainFlag(
    name="windows_joined",
    bit=28,
    text="The sub-slice has more than 8 windows. The last one covers all that follow.",
    kind=FlagKind.NOTE,
)
MARGIN = ChainFlag(
    name="margin",
    bit=29,
    text="The sub-slice repeats one of a neighbour of the time slice; no candidate begins in it.",
    kind=FlagKind.NOTE,
)
NO_NEIGHBOUR = ChainFlag(
    name="no_neighbour",
    bit=30,
    text="The time slice begins or ends with this sub-slice and has no margin there: tracks that cross its edge are "
    "missing.",
)

mu3e_flag_types = SharedTypes(
    __file__,
    "mu3e_flags",
    flags=(
        *(NO_HITS_BANK, BAD_HITS_BANK, TIME_OUTSIDE, UNKNOWN_SENSOR, BAD_COLUMN, BAD_ROW, TOO_MANY_HITS),
        *(REPEATED_HITS, TOO_MANY_TRIPLETS, TOO_MANY_TRACKS, TOO_MANY_PAIRS, VERTICES_LEFT_OUT),
        *(WINDOWS_JOINED, MARGIN, NO_NEIGHBOUR),
    ),
)
