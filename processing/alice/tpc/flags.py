"""Flags that this chain adds to those of the framework. Each event has its own; none affects another event."""

from hltnode.processing.framework.collections import SharedTypes
from hltnode.processing.framework.flags import ChainFlag, FlagKind

NO_TPC = ChainFlag(name="no_tpc", bit=16, text="The event has no bank of clusters.")
BAD_TPC_BANK = ChainFlag(
    name="bad_tpc_bank",
    bit=17,
    text=(
        "A bank of the TPC has an unknown type, version or source, or no whole number of clusters. Its clusters are "
        "not used."
    ),
)
BAD_CLUSTER = ChainFlag(
    name="bad_cluster",
    bit=18,
    text=(
        "A cluster has the number of no row, or lies more than 2 cm beyond the border of its slice. The other clusters "
        "are used."
    ),
)
ROW_TOO_FULL = ChainFlag(
    name="row_too_full", bit=19, text="A row of a slice has more than 65535 clusters. None of them is used."
)
TOO_MANY_TRACKLETS = ChainFlag(
    name="too_many_tracklets",
    bit=20,
    text="A slice has more than 65535 seeds. The last ones are not used.",
)
TOO_MANY_SLICE_TRACKS = ChainFlag(
    name="too_many_slice_tracks",
    bit=21,
    text="A slice has more tracks than it has room for. The last ones are missing.",
)
CROWDED_CLUSTERS = ChainFlag(
    name="crowded_clusters",
    bit=22,
    text="More clusters than a search takes lie in one window. The search found none of them.",
    kind=FlagKind.NOTE,
)
LONG_CHAIN = ChainFlag(
    name="long_chain",
    bit=23,
    text="More than 32 segments still continue each other after cuts at weak links. They stay separate tracks.",
    kind=FlagKind.NOTE,
)
MANY_JETS = ChainFlag(
    name="many_jets",
    bit=24,
    text="The event has more than 16 jets. The highest ones are kept.",
    kind=FlagKind.NOTE,
)
CROWDED_V0S = ChainFlag(
    name="crowded_v0s",
    bit=25,
    text="More than 2048 tracks lie around one that does not point to the beam. It has no V0 candidate.",
    kind=FlagKind.NOTE,
)
MANY_V0S = ChainFlag(
    name="many_v0s",
    bit=26,
    text="The event has no room for all V0 candidates. Those of its first tracks are kept.",
    kind=FlagKind.NOTE,
)
CROWDED_ENDS = ChainFlag(
    name="crowded_ends",
    bit=27,
    text="More than 4096 ends of segments without a link lie around one. It stays without a link.",
    kind=FlagKind.NOTE,
)

tpc_flag_types = SharedTypes(
    __file__,
    "tpc_flags",
    flags=(
        *(NO_TPC, BAD_TPC_BANK, BAD_CLUSTER, ROW_TOO_FULL),
        *(TOO_MANY_TRACKLETS, TOO_MANY_SLICE_TRACKS, CROWDED_CLUSTERS, LONG_CHAIN),
        *(MANY_JETS, CROWDED_V0S, MANY_V0S, CROWDED_ENDS),
    ),
)
