"""Histograms that are filled with any lines."""

from hltnode.processing.mu3e.lines.inputs import event, tracks, vertices
from hltnode.processing.selection.lines.histogram import Histogram

MU3E_HISTOGRAMS = (
    Histogram("mu3e_hits", lambda e: e.n_hits, 100, 0, 2000, of=event, description="hits of a sub-slice"),
    Histogram("mu3e_tracks", lambda e: e.n_tracks, 100, -0.5, 99.5, of=event, description="tracks of a sub-slice"),
    Histogram("track_momentum", lambda t: t.momentum, 60, 0, 60, of=tracks, description="momentum of a track, MeV/c"),
    Histogram("track_chi2", lambda t: t.chi2, 50, 0, 50, of=tracks, description="chi2 of a track"),
    Histogram("vertex_energy", lambda v: v.energy, 60, 90, 120, of=vertices, description="energy of a vertex, MeV"),
    Histogram("vertex_momentum", lambda v: v.momentum, 50, 0, 25, of=vertices,
              description="sum of the momenta of a vertex, MeV/c"),
)  # fmt: skip
