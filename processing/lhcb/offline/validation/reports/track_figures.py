"""The variables and labels of the figures of the checker."""

from hltnode.processing.lhcb.offline.validation.checker.binning import PARTICLE_BINNINGS
from hltnode.processing.offline.plots.tracks import TrackFigures

_LABELS = {
    "velo_eta25": r"VELO, $2<\eta<5$",
    "velo_ut": "VELO and UT",
    "long": "long",
    "long_from_b": "long from b",
    "electrons_long": "long electrons",
}

TRACK_FIGURES = TrackFigures(
    binnings=PARTICLE_BINNINGS,
    labels=_LABELS,
    of_events=frozenset({"n_pvs"}),
    spectrum="long",
    spectrum_label="spectrum of long particles (a.u.)",
)
