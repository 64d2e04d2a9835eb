"""The inputs of lines by the names that files of lines import, and the usual fields of events."""

from hltnode.processing.lhcb.lines.inputs.calorimeter_fields import dielectrons, ecal_clusters, photon_pairs, photons
from hltnode.processing.lhcb.lines.inputs.downstream_fields import downstream_tracks, downstream_v0s
from hltnode.processing.lhcb.lines.inputs.event_fields import event
from hltnode.processing.lhcb.lines.inputs.half_fields import half_pairs, half_vertices
from hltnode.processing.lhcb.lines.inputs.jet_fields import jets
from hltnode.processing.lhcb.lines.inputs.primary_vertex_fields import primary_vertices
from hltnode.processing.lhcb.lines.inputs.stub_fields import muon_stubs
from hltnode.processing.lhcb.lines.inputs.track_fields import electrons, long_tracks, muons, velo_tracks
from hltnode.processing.lhcb.lines.inputs.vertex_fields import (
    dimuons,
    displaced_vertices,
    two_track_vertices,
    v0_pairs,
    v0s,
)

INPUTS = {
    "event": event,
    "velo_tracks": velo_tracks,
    "primary_vertices": primary_vertices,
    "half_vertices": half_vertices,
    "half_pairs": half_pairs,
    "long_tracks": long_tracks,
    "downstream_tracks": downstream_tracks,
    "downstream_v0s": downstream_v0s,
    "muons": muons,
    "muon_stubs": muon_stubs,
    "electrons": electrons,
    "ecal_clusters": ecal_clusters,
    "photons": photons,
    "photon_pairs": photon_pairs,
    "dielectrons": dielectrons,
    "two_track_vertices": two_track_vertices,
    "displaced_vertices": displaced_vertices,
    "dimuons": dimuons,
    "v0s": v0s,
    "v0_pairs": v0_pairs,
    "jets": jets,
}
"""The inputs by the names that files of lines import."""

USUAL_FIELDS = (
    "event.run",
    "event.event_id_low",
    "event.event_id_high",
    "event.n_pvs",
    "event.n_long_tracks",
    "decisions.accepted",
    *(
        f"long_tracks.{name}"
        for name in ("pt", "eta", "phi", "is_positive", "ip_chi2", "full_chi2", "ghost_probability", "is_muon")
    ),
    *(f"dimuons.{name}" for name in ("mass", "pt", "chi2", "ip", "fd_chi2", "same_sign")),
)
"""Twenty fields of events whose user has not chosen any."""
