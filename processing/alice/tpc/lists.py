"""Output lists of the chain `alice_tpc`."""

from hltnode.processing.alice.tpc.candidates.collections import jet, jet_count, v0, v0_count
from hltnode.processing.alice.tpc.collections import (
    COVARIANCE,
    track,
    track_cluster,
    track_cluster_count,
    track_count,
)
from hltnode.processing.alice.tpc.merging.collections import (
    merged_segment,
    merged_segment_count,
    merged_track,
    merged_track_count,
)
from hltnode.processing.framework.output_lists import ListValue, OutputList

TRACKS = OutputList(
    name="tracks",
    text="the tracks of each slice, with their parameters at the innermost cluster",
    count=track_count,
    values={
        "slice": ListValue(column=track, member="slice", text="slice of the track"),
        "n_clusters": ListValue(column=track, member="n_clusters", text="clusters of the track"),
        "x": ListValue(column=track, member="x", text="x of the innermost cluster in the slice", unit="cm"),
        "y": ListValue(column=track, member="y", text="y of the track there", unit="cm"),
        "z": ListValue(column=track, member="z", text="z of the track there, global frame", unit="cm"),
        "sin_phi": ListValue(column=track, member="sin_phi", text="sine of the angle to the x axis of the slice"),
        "tan_lambda": ListValue(column=track, member="tan_lambda", text="pz / pT"),
        "q_pt": ListValue(column=track, member="q_pt", text="charge over transverse momentum", unit="c/GeV"),
        "chi2": ListValue(column=track, member="chi2", text="chi2 of the clusters that the fit took"),
        "charge": ListValue(
            column=track, member="charge", text="sum of the charges of its clusters", unit="ADC counts"
        ),
        **{
            name: ListValue(column=track, member=name, text=f"covariance of {name[2]} and {name[3]}")
            for name in COVARIANCE
        },
    },
)
TRACK_CLUSTERS = OutputList(
    name="track_clusters",
    text="the clusters of the tracks, n_clusters of each, rows upwards",
    count=track_cluster_count,
    values={"cluster": ListValue(column=track_cluster, text="number of the cluster in its event")},
)
MERGED_TRACKS = OutputList(
    name="merged_tracks",
    text="tracks of the whole TPC, with their parameters at the innermost cluster of the fit",
    count=merged_track_count,
    values={
        "merged_slice": ListValue(column=merged_track, member="slice", text="slice in whose frame the parameters are"),
        "n_merged_segments": ListValue(
            column=merged_track, member="n_segments", text="tracks of slices that it consists of"
        ),
        "n_merged_clusters": ListValue(
            column=merged_track, member="n_clusters", text="different clusters of all segments"
        ),
        "n_merged_fitted": ListValue(
            column=merged_track,
            member="n_fitted",
            text="clusters that the fit took; 0: the parameters are those of the innermost segment",
        ),
        "merged_charge": ListValue(
            column=merged_track, member="charge", text="sum of the charges of its segments", unit="ADC counts"
        ),
        "merged_x": ListValue(
            column=merged_track, member="x", text="x of the innermost cluster in the slice", unit="cm"
        ),
        "merged_y": ListValue(column=merged_track, member="y", text="y of the track there", unit="cm"),
        "merged_z": ListValue(column=merged_track, member="z", text="z of the track there, global frame", unit="cm"),
        "merged_sin_phi": ListValue(
            column=merged_track, member="sin_phi", text="sine of the angle to the x axis of the slice"
        ),
        "merged_tan_lambda": ListValue(column=merged_track, member="tan_lambda", text="pz / pT"),
        "merged_q_pt": ListValue(
            column=merged_track, member="q_pt", text="charge over transverse momentum", unit="c/GeV"
        ),
        "merged_chi2": ListValue(column=merged_track, member="chi2", text="chi2 of the clusters that the fit took"),
        **{
            f"merged_{name}": ListValue(column=merged_track, member=name, text=f"covariance of {name[2]} and {name[3]}")
            for name in COVARIANCE
        },
    },
)
MERGED_SEGMENTS = OutputList(
    name="merged_segments",
    text="the tracks of slices that merged tracks consist of, n_segments of each, in the order of flight",
    count=merged_segment_count,
    values={"segment": ListValue(column=merged_segment, text="number of the track in the list tracks")},
)
JETS = OutputList(
    name="jets",
    text="groups of merged tracks in cones, highest above the mean of the event first",
    count=jet_count,
    values={
        "jet_pt": ListValue(column=jet, member="pt", text="sum of the transverse momenta of its tracks", unit="GeV/c"),
        "jet_background": ListValue(
            column=jet, member="background", text="mean of the event on as many cells", unit="GeV/c"
        ),
        "jet_eta": ListValue(column=jet, member="eta", text="pseudorapidity of the centre of the cone"),
        "jet_phi": ListValue(column=jet, member="phi", text="azimuth of the centre of the cone", unit="rad"),
        "n_jet_tracks": ListValue(column=jet, member="n_tracks", text="tracks in the cone"),
    },
)
V0S = OutputList(
    name="v0_candidates",
    text="pairs of merged tracks of opposite charge that may come from the decay of a neutral particle",
    count=v0_count,
    values={
        "v0_x": ListValue(column=v0, member="x", text="x where the tracks are closest, global frame", unit="cm"),
        "v0_y": ListValue(column=v0, member="y", text="y there", unit="cm"),
        "v0_z": ListValue(column=v0, member="z", text="z there, the mean of both tracks", unit="cm"),
        "mass_k0s": ListValue(column=v0, member="mass_k0s", text="mass of a pair of pions", unit="GeV/c2"),
        "mass_lambda": ListValue(column=v0, member="mass_lambda", text="mass of p and pi-", unit="GeV/c2"),
        "mass_antilambda": ListValue(
            column=v0, member="mass_antilambda", text="mass of an antiproton and pi+", unit="GeV/c2"
        ),
        "v0_pt": ListValue(column=v0, member="pt", text="transverse momentum of both tracks", unit="GeV/c"),
        "v0_tan_lambda": ListValue(column=v0, member="slope", text="pz / pT of both tracks"),
        "v0_dca": ListValue(column=v0, member="dca", text="distance of the tracks there", unit="cm"),
        "v0_pointing": ListValue(
            column=v0,
            member="pointing",
            text="cosine of momentum and the way from the beam line, transverse plane",
        ),
        "positive_track": ListValue(column=v0, member="positive", text="number of a track in the list merged_tracks"),
        "negative_track": ListValue(column=v0, member="negative", text="number of a track in the list merged_tracks"),
    },
)
"""Positive tracks in their order, and the negative ones of each in theirs."""
