"""Flags that this chain adds to those of the framework. Each event has its own; none affects another event."""

from hltnode.processing.framework.collections import SharedTypes
from hltnode.processing.framework.flags import ChainFlag, FlagKind

NO_RICH = ChainFlag(name="no_rich", bit=16, text="The event has no bank of the RICH.")
BAD_RICH_BANK = ChainFlag(
    name="bad_rich_bank",
    bit=17,
    text="The bank of the RICH has an unknown type or version, or another size than its number of hits tells.",
)
TOO_MANY_RICH_HITS = ChainFlag(name="too_many_rich_hits", bit=18, text="The event has more than 64 hits. None is used.")
BAD_PMT = ChainFlag(name="bad_pmt", bit=19, text="A hit has the number of no photomultiplier. The other hits are used.")
NO_CIRCLE = ChainFlag(
    name="no_circle",
    bit=20,
    text="The single-ring fit has no result: fewer than three hits, equal hits, hits on a line or near no circle.",
    kind=FlagKind.NOTE,
)
TOO_MANY_RINGS = ChainFlag(
    name="too_many_rings",
    bit=21,
    text="The event may have more rings than those of the list.",
    kind=FlagKind.NOTE,
)

rich_flag_types = SharedTypes(
    __file__, "rich_flags", flags=(NO_RICH, BAD_RICH_BANK, TOO_MANY_RICH_HITS, BAD_PMT, NO_CIRCLE, TOO_MANY_RINGS)
)
