"""Output lists of the chain `km3net`."""

from hltnode.processing.framework.output_lists import ListValue, OutputList
from hltnode.processing.km3net.hits.collections import candidate, candidate_count, window, window_count

CANDIDATES = OutputList(
    name="candidate_list",
    text="the hits that begin a candidate",
    count=candidate_count,
    values={
        "time": ListValue(column=candidate, member="time", text="time in the sub-slice", unit="ns"),
        "triggers": ListValue(column=candidate, member="triggers", text="triggers, as bits"),
        "hits": ListValue(column=candidate, member="hits", text="hits in the time window"),
        "pmts": ListValue(column=candidate, member="pmts", text="PMTs that they are in"),
        "causal_hits": ListValue(column=candidate, member="causal_hits", text="hits that light connects"),
        "charge": ListValue(column=candidate, member="charge", text="charge, hundredths of a photoelectron"),
    },
)
WINDOWS = OutputList(
    name="windows",
    text="the windows of time that are kept",
    count=window_count,
    values={
        "start_ns": ListValue(column=window, member="start_ns", text="start, from that of the sub-slice", unit="ns"),
        "end_ns": ListValue(column=window, member="end_ns", text="end, from the start of the sub-slice", unit="ns"),
        "lines": ListValue(column=window, member="lines", text="triggers of the candidates, as bits"),
        "candidates": ListValue(column=window, member="candidates", text="hits that begin a candidate"),
        "window_hits": ListValue(column=window, member="hits", text="largest number of hits of a candidate"),
        "window_pmts": ListValue(column=window, member="pmts", text="largest number of PMTs of a candidate"),
        "window_causal_hits": ListValue(column=window, member="causal_hits", text="largest number of connected hits"),
        "window_charge": ListValue(
            column=window, member="charge", text="largest charge, hundredths of a photoelectron"
        ),
    },
)
