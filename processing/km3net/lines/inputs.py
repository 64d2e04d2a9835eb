"""The inputs of lines: the sub-slice and its windows."""

from hltnode.processing.framework.batch import event_flags
from hltnode.processing.framework.flags import ChainFlag, EventFlag
from hltnode.processing.km3net.hits.collections import (
    Trigger,
    candidate_count,
    event_number,
    own_hit_count,
    window,
    window_count,
)
from hltnode.processing.km3net.hits.collections import windows as window_collection
from hltnode.processing.km3net.hits.flags import km3net_flag_types
from hltnode.processing.selection.lines.inputs import ColumnField, DerivedField, Input


def _flagged(mask: int, text: str) -> DerivedField:
    return DerivedField(lambda one: (one.flags & mask) != 0, text)


def _triggered(mask: int, text: str) -> DerivedField:
    return DerivedField(lambda one: (one.triggers & mask) != 0, text)


def _flag_field(flag: ChainFlag) -> DerivedField:
    return _flagged(flag.mask, "true if: " + flag.text[0].lower() + flag.text[1:].rstrip("."))


event = Input(
    "events",
    "the sub-slice as a whole",
    {
        "n_hits": ColumnField(own_hit_count, "hits"),
        "n_candidates": ColumnField(candidate_count, "hits that begin a candidate"),
        "n_windows": ColumnField(window_count, "windows"),
        "slice": ColumnField(event_number, "number of the time slice, low 32 bits", element=0),
        "sub_slice": ColumnField(event_number, "number of the sub-slice in its time slice", element=1),
        "flags": ColumnField(event_flags, "the flag word"),
        "incomplete": _flagged(EventFlag.INCOMPLETE, "true if the fragment of a source was missing"),
        **{flag.name: _flag_field(flag) for flag in km3net_flag_types.flags},
    },
)

time_windows = Input(
    "time_windows",
    "windows that begin in the sub-slice",
    {
        "start": ColumnField(window, "start in ns since that of the sub-slice", member="start_ns"),
        "end": ColumnField(window, "end in ns since the start of the sub-slice", member="end_ns"),
        "triggers": ColumnField(window, "triggers of its candidates, as bits", member="lines"),
        "candidates": ColumnField(window, "hits that begin a candidate", member="candidates"),
        "hits": ColumnField(window, "largest number of hits of a candidate", member="hits"),
        "pmts": ColumnField(window, "largest number of PMTs of a candidate", member="pmts"),
        "causal_hits": ColumnField(window, "largest number of hits that light connects", member="causal_hits"),
        "charge": ColumnField(window, "largest charge in hundredths of a photoelectron", member="charge"),
        "sc": _triggered(Trigger.TRIGGER_SC, "true with two hits in adjacent PMTs"),
        "fc": _triggered(Trigger.TRIGGER_FC, "true with two hits in different PMTs of a floor"),
        "afc": _triggered(Trigger.TRIGGER_AFC, "true with two hits on consecutive floors"),
        "dn7": _triggered(Trigger.TRIGGER_DN7, "true with hits in seven PMTs"),
        "high_charge": _triggered(Trigger.TRIGGER_CHARGE, "true with a hit of much charge"),
        "causal": _triggered(Trigger.TRIGGER_CAUSAL, "true with enough hits that light connects"),
    },
    collection=window_collection,
    count=window_count,
)

INPUTS = {"event": event, "time_windows": time_windows}
EVENT_WORDS = (event.candidate().slice, event.candidate().sub_slice)
"""The numbers that scalers hash. The run is not among them: MFPs do not have it."""
USUAL_FIELDS = (
    *("event.n_hits", "event.n_candidates", "event.n_windows", "event.slice", "event.sub_slice", "event.flags"),
    *("time_windows.*", "decisions.accepted"),
)
