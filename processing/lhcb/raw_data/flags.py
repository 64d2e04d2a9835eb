"""Flags that the chain of LHCb adds to those of the framework."""

from hltnode.processing.framework.collections import SharedTypes
from hltnode.processing.framework.flags import ChainFlag, FlagKind

GLOBAL_EVENT_CUT = ChainFlag(
    name="global_event_cut",
    bit=5,
    text=(
        "The event has more clusters than the global event cut of the trigger configuration allows. Nothing was "
        "reconstructed. This is part of the selection and no reason to keep an event."
    ),
    kind=FlagKind.CUT,
)
TOO_MANY_CLUSTERS = ChainFlag(
    name="too_many_clusters",
    bit=7,
    text="A detector announces more clusters than the reconstruction accepts. Nothing was reconstructed.",
)
MISSING_DETECTOR = ChainFlag(
    name="missing_detector", bit=8, text="The event has no bank of a detector that the sequence reconstructs."
)
MANY_JETS = ChainFlag(
    name="many_jets",
    bit=24,
    text="The event has more than 16 jets. The first ones are kept.",
    kind=FlagKind.NOTE,
)

flag_types = SharedTypes(__file__, "flags", flags=(GLOBAL_EVENT_CUT, TOO_MANY_CLUSTERS, MISSING_DETECTOR, MANY_JETS))
