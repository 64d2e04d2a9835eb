"""Histograms that are filled with any lines."""

from hltnode.processing.km3net.lines.inputs import event, time_windows
from hltnode.processing.selection.lines.histogram import Histogram

KM3NET_HISTOGRAMS = (
    Histogram("km3net_hits", lambda e: e.n_hits, 100, 0, 1000, of=event, description="hits of a sub-slice"),
    Histogram("km3net_windows", lambda e: e.n_windows, 17, -0.5, 16.5, of=event, description="windows of a sub-slice"),
    Histogram("window_hits", lambda w: w.hits, 65, -0.5, 64.5, of=time_windows, description="hits of a window"),
    Histogram("window_pmts", lambda w: w.pmts, 65, -0.5, 64.5, of=time_windows, description="PMTs of a window"),
    Histogram("window_causal_hits", lambda w: w.causal_hits, 65, -0.5, 64.5, of=time_windows,
              description="hits of a window that light connects"),
)  # fmt: skip
