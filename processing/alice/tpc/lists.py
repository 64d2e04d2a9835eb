"""Output lists of the chain `alice_tpc`."""

from hltnode.processing.alice.tpc.collections import (
    COVARIANCE,
    track,
    track_cluster,
    track_cluster_count,
    track_count,
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
