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
UNKNOWN_PMT = ChainFlag(
    name="unknown_pmt", bit=19, text="A hit has the number of no PMT of the detector. The other hits are used."
)
UNSORTED_HITS = ChainFlag(
    name="unsorted_hits",
    bit=20,
    text="The hits of a source are not in the order of PMT and time. All are used.",
    kind=FlagKind.NOTE,
)
TOO_MANY_HITS = ChainFlag(
    name="too_many_hits",
    bit=21,
    text="The sub-slice has more than 1,024 hits with those behind it that its triggers need. None is used.",
)
TRIGGERS_LEFT_OUT = ChainFlag(
    name="triggers_left_out",
    bit=22,
    text="More than 256 hits begin a candidate. The first 256 are listed; windows cover all.",
    kind=FlagKind.NOTE,
)
WINDOWS_JOINED = ChainFlag(
    name="windows_joined",
    bit=23,
    text="The sub-slice has more than 16 windows. The last one covers all that follow.",
    kind=FlagKind.NOTE,
)
CROWDED = ChainFlag(
    name="crowded",
    bit=24,
    text="More than 64 hits lie in the time window of a trigger. The first 64 are tested.",
    kind=FlagKind.NOTE,
)
MARGIN = ChainFlag(
    name="margin",
    bit=25,
    text="The sub-slice repeats one of a neighbour of the time slice; no candidate begins in it.",
    kind=FlagKind.NOTE,
)
NOTHING_BEHIND = ChainFlag(
    name="nothing_behind",
    bit=26,
    text="The time slice ends with this sub-slice and has no margin: candidates that cross its end are missing.",
)
HIT_MOVED = ChainFlag(
    name="hit_moved",
    bit=27,
    text="The clock offset of a source moves a hit into the sub-slice before or behind, which uses it.",
    kind=FlagKind.NOTE,
)

km3net_flag_types = SharedTypes(
    __file__,
    "km3net_flags",
    flags=(
        *(NO_HITS_BANK, BAD_HITS_BANK, TIME_OUTSIDE, UNKNOWN_PMT, UNSORTED_HITS, TOO_MANY_HITS),
        *(TRIGGERS_LEFT_OUT, WINDOWS_JOINED, CROWDED, MARGIN, NOTHING_BEHIND, HIT_MOVED),
    ),
)
