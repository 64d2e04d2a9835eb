"""The inputs of lines: the event, the tracks of its slices, its merged tracks, its jets, its V0 candidates."""

from typing import Any

from hltnode.processing.alice.tpc.candidates.collections import jet, jet_count, v0, v0_count
from hltnode.processing.alice.tpc.candidates.collections import jets as jet_collection
from hltnode.processing.alice.tpc.candidates.collections import v0s as v0_collection
from hltnode.processing.alice.tpc.collections import (
    all_tracklet_count,
    cluster_count,
    event_number,
    track,
    track_count,
)
from hltnode.processing.alice.tpc.collections import tracks as track_collection
from hltnode.processing.alice.tpc.flags import (
    BAD_CLUSTER,
    BAD_TPC_BANK,
    CROWDED_CLUSTERS,
    CROWDED_ENDS,
    CROWDED_V0S,
    LONG_CHAIN,
    MANY_JETS,
    MANY_V0S,
    NO_TPC,
    ROW_TOO_FULL,
    TOO_MANY_SLICE_TRACKS,
    TOO_MANY_TRACKLETS,
)
from hltnode.processing.alice.tpc.merging.collections import merged_track, merged_track_count
from hltnode.processing.alice.tpc.merging.collections import merged_tracks as merged_track_collection
from hltnode.processing.framework.batch import event_flags
from hltnode.processing.framework.flags import EventFlag
from hltnode.processing.selection.expressions.functions import maximum, sqrt
from hltnode.processing.selection.lines.inputs import ColumnField, DerivedField, Input

MIN_Q_PT = 1e-6
"""c/GeV: a straighter track has the transverse momentum of this one."""


def _flagged(mask: int, text: str) -> DerivedField:
    return DerivedField(lambda event: (event.flags & mask) != 0, text)


def _transverse_momentum(track: Any) -> Any:
    return 1.0 / maximum(maximum(track.q_pt, -track.q_pt), MIN_Q_PT)


event = Input(
    "events",
    "the event as a whole",
    {
        "n_clusters": ColumnField(cluster_count, "clusters of the TPC"),
        "n_tracklets": ColumnField(all_tracklet_count, "tracklets with enough clusters"),
        "n_tracks": ColumnField(track_count, "tracks of all slices"),
        "n_merged_tracks": ColumnField(merged_track_count, "merged tracks of the event"),
        "n_jets": ColumnField(jet_count, "jets of the event"),
        "n_v0s": ColumnField(v0_count, "V0 candidates of the event"),
        "number": ColumnField(event_number, "number of the event in the run, low 32 bits", element=0),
        "number_high": ColumnField(event_number, "number of the event in the run, high 32 bits", element=1),
        "flags": ColumnField(event_flags, "the flag word"),
        "incomplete": _flagged(EventFlag.INCOMPLETE, "true if the fragment of a source was missing"),
        "no_tpc": _flagged(NO_TPC.mask, "true without a bank of clusters"),
        "bad_bank": _flagged(BAD_TPC_BANK.mask, "true if a bank could not be used"),
        "bad_cluster": _flagged(BAD_CLUSTER.mask, "true if a cluster has no row, or lies beyond its slice"),
        "row_too_full": _flagged(ROW_TOO_FULL.mask, "true if a row has more than 65535 clusters"),
        "too_many_tracklets": _flagged(TOO_MANY_TRACKLETS.mask, "true if a slice had more than 65535 seeds"),
        "too_many_tracks": _flagged(TOO_MANY_SLICE_TRACKS.mask, "true if a slice had no room for tracks"),
        "crowded": _flagged(CROWDED_CLUSTERS.mask, "true if a search has met too many clusters in one place"),
        "long_chain": _flagged(LONG_CHAIN.mask, "true if more than 32 segments still continue each other after cuts"),
        "many_jets": _flagged(MANY_JETS.mask, "true if the event has more than 16 jets"),
        "crowded_ends": _flagged(CROWDED_ENDS.mask, "true if an end of a segment had too many others around it"),
        "crowded_v0s": _flagged(CROWDED_V0S.mask, "true if a track had too many partners for V0 candidates"),
        "many_v0s": _flagged(MANY_V0S.mask, "true if the event had no room for all V0 candidates"),
    },
)

tpc_tracks = Input(
    "tpc_tracks",
    "tracks of the slices",
    {
        "slice": ColumnField(track, "slice; those of side A come first", member="slice"),
        "clusters": ColumnField(track, "clusters of the track", member="n_clusters"),
        "x": ColumnField(track, "x of the innermost cluster in the slice in cm", member="x"),
        "y": ColumnField(track, "y of the track there in cm", member="y"),
        "z": ColumnField(track, "z of the track there in cm", member="z"),
        "sin_phi": ColumnField(track, "sine of the angle to the x axis of the slice", member="sin_phi"),
        "tan_lambda": ColumnField(track, "pz / pT", member="tan_lambda"),
        "q_pt": ColumnField(track, "charge over transverse momentum in c/GeV", member="q_pt"),
        "chi2": ColumnField(track, "chi2 of the clusters that the fit took, 2 n - 5 degrees of freedom", member="chi2"),
        "pt": DerivedField(_transverse_momentum, "transverse momentum in GeV/c"),
    },
    collection=track_collection,
    count=track_count,
)

tpc_merged_tracks = Input(
    "tpc_merged_tracks",
    "tracks of the whole TPC",
    {
        "slice": ColumnField(merged_track, "slice in whose frame the parameters are", member="slice"),
        "segments": ColumnField(merged_track, "tracks of slices that it consists of", member="n_segments"),
        "clusters": ColumnField(merged_track, "different clusters of all segments", member="n_clusters"),
        "fitted": ColumnField(
            merged_track,
            "clusters that the fit took; 0: the parameters are those of the innermost segment",
            member="n_fitted",
        ),
        "x": ColumnField(merged_track, "x of the innermost cluster in the slice in cm", member="x"),
        "y": ColumnField(merged_track, "y of the track there in cm", member="y"),
        "z": ColumnField(merged_track, "z of the track there in cm", member="z"),
        "sin_phi": ColumnField(merged_track, "sine of the angle to the x axis of the slice", member="sin_phi"),
        "tan_lambda": ColumnField(merged_track, "pz / pT", member="tan_lambda"),
        "q_pt": ColumnField(merged_track, "charge over transverse momentum in c/GeV", member="q_pt"),
        "chi2": ColumnField(merged_track, "chi2 of the clusters that the fit took", member="chi2"),
        "charge": ColumnField(merged_track, "sum of the charges of its segments in ADC counts", member="charge"),
        "pt": DerivedField(_transverse_momentum, "transverse momentum in GeV/c"),
    },
    collection=merged_track_collection,
    count=merged_track_count,
)

tpc_jets = Input(
    "tpc_jets",
    "groups of merged tracks in cones",
    {
        "pt": ColumnField(jet, "sum of the transverse momenta of its tracks in GeV/c", member="pt"),
        "background": ColumnField(jet, "mean of the event on as many cells in GeV/c", member="background"),
        "eta": ColumnField(jet, "pseudorapidity of the centre of the cone", member="eta"),
        "phi": ColumnField(jet, "azimuth of the centre of the cone in rad", member="phi"),
        "tracks": ColumnField(jet, "tracks in the cone", member="n_tracks"),
        "pt_above_background": DerivedField(lambda j: j.pt - j.background, "pt without the background in GeV/c"),
    },
    collection=jet_collection,
    count=jet_count,
)

v0s = Input(
    "v0s",
    "pairs of merged tracks of opposite charge that do not point to the beam line",
    {
        "x": ColumnField(v0, "x where the tracks are closest in cm", member="x"),
        "y": ColumnField(v0, "y there in cm", member="y"),
        "z": ColumnField(v0, "z there in cm", member="z"),
        "mass_k0s": ColumnField(v0, "mass of a pair of pions in GeV/c2", member="mass_k0s"),
        "mass_lambda": ColumnField(v0, "mass of p and pi- in GeV/c2", member="mass_lambda"),
        "mass_antilambda": ColumnField(v0, "mass of an antiproton and pi+ in GeV/c2", member="mass_antilambda"),
        "pt": ColumnField(v0, "transverse momentum of both tracks in GeV/c", member="pt"),
        "tan_lambda": ColumnField(v0, "pz / pT of both tracks", member="slope"),
        "dca": ColumnField(v0, "distance of the tracks in cm", member="dca"),
        "pointing": ColumnField(
            v0, "cosine of momentum and the way from the beam line in the transverse plane", member="pointing"
        ),
        "positive": ColumnField(v0, "number of the positive merged track", member="positive"),
        "negative": ColumnField(v0, "number of the negative merged track", member="negative"),
        "radius": DerivedField(lambda v: sqrt(v.x * v.x + v.y * v.y), "distance from the beam line in cm"),
    },
    collection=v0_collection,
    count=v0_count,
)

INPUTS = {
    "event": event,
    "tpc_tracks": tpc_tracks,
    "tpc_merged_tracks": tpc_merged_tracks,
    "tpc_jets": tpc_jets,
    "v0s": v0s,
}
EVENT_WORDS = (event.candidate().number, event.candidate().number_high)
"""The numbers that scalers hash. The run is not among them: MFPs do not have it."""
USUAL_FIELDS = (
    *("event.*", "tpc_tracks.slice", "tpc_tracks.clusters", "tpc_tracks.pt", "tpc_tracks.q_pt"),
    *("tpc_tracks.tan_lambda", "tpc_tracks.chi2", "decisions.accepted"),
    *(
        "tpc_merged_tracks.clusters",
        "tpc_merged_tracks.pt",
        "tpc_merged_tracks.q_pt",
        "tpc_merged_tracks.tan_lambda",
        "tpc_jets.*",
        "v0s.*",
    ),
)
