"""Histograms that are filled with any lines."""

from hltnode.processing.alice.lines.inputs import event, tpc_jets, tpc_merged_tracks, tpc_tracks, v0s
from hltnode.processing.selection.lines.histogram import Histogram

TPC_HISTOGRAMS = (
    Histogram("tpc_clusters", lambda e: e.n_clusters, 100, 0, 5_000_000, of=event, description="clusters of an event"),
    Histogram("tpc_slice_tracks", lambda e: e.n_tracks, 100, 0, 100_000, of=event, description="tracks of an event"),
    Histogram("tpc_track_clusters", lambda t: t.clusters, 160, -0.5, 159.5, of=tpc_tracks,
              description="clusters of a track"),
    Histogram("tpc_track_pt", lambda t: t.pt, 100, 0, 10, of=tpc_tracks,
              description="transverse momentum of a track in GeV/c"),
    Histogram("tpc_merged_track_pt", lambda t: t.pt, 100, 0, 10, of=tpc_merged_tracks,
              description="transverse momentum of a merged track in GeV/c"),
    Histogram("tpc_jet_pt", lambda j: j.pt_above_background, 100, 0, 100, of=tpc_jets,
              description="transverse momentum of a jet above the mean of the event in GeV/c"),
    Histogram("tpc_v0_mass_k0s", lambda v: v.mass_k0s, 60, 0.4676, 0.5276, of=v0s,
              description="mass of a V0 candidate as two pions in GeV/c2"),
    Histogram("tpc_v0_mass_lambda", lambda v: v.mass_lambda, 60, 1.1037, 1.1277, of=v0s,
              description="mass of a V0 candidate as p and pi- in GeV/c2"),
)  # fmt: skip
