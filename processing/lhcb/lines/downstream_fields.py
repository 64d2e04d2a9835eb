"""The input of lines on downstream tracks, and its fields."""

from hltnode.processing.lhcb.tracks.downstream.collections import (
    downstream_count,
    downstream_ghost_probability,
    downstream_hit_count,
    downstream_search,
    downstream_seed_quality,
    downstream_state,
)
from hltnode.processing.lhcb.tracks.downstream.collections import (
    downstream_tracks as downstream_track_collection,
)
from hltnode.processing.selection.expressions.functions import atan2, log, sqrt
from hltnode.processing.selection.expressions.units import ENERGY, LENGTH
from hltnode.processing.selection.lines.inputs import ColumnField, DerivedField, Input

downstream_tracks = Input(
    "downstream tracks",
    "tracks through UT and SciFi that no long track has, of the sequence hlt1_2026",
    {
        "x": ColumnField(downstream_state["x"], "at the end of the UT", LENGTH),
        "y": ColumnField(downstream_state["y"], "at the end of the UT", LENGTH),
        "tx": ColumnField(downstream_state["tx"], "dx/dz there"),
        "ty": ColumnField(downstream_state["ty"], "dy/dz there"),
        "qop": ColumnField(downstream_state["qop"], "charge over momentum", ENERGY.to_the(-1)),
        "p": DerivedField(lambda t: 1.0 / abs(t.qop), "momentum"),
        "pt": DerivedField(
            lambda t: t.p * sqrt((t.tx * t.tx + t.ty * t.ty) / (1.0 + t.tx * t.tx + t.ty * t.ty)),
            "transverse momentum",
        ),
        "eta": DerivedField(
            lambda t: log((1.0 + sqrt(1.0 + t.tx * t.tx + t.ty * t.ty)) / sqrt(t.tx * t.tx + t.ty * t.ty)),
            "pseudorapidity",
        ),
        "phi": DerivedField(lambda t: atan2(t.ty, t.tx), "azimuth"),
        "is_positive": DerivedField(lambda t: t.qop > 0, "true for a positive charge"),
        "chi2": ColumnField(downstream_search["chi2"], "chi2 of the search in the UT"),
        "seed_chi2": ColumnField(downstream_seed_quality, "chi2 of its SciFi seed"),
        "ghost_probability": ColumnField(downstream_ghost_probability, "probability that it belongs to no particle"),
        "n_scifi_hits": ColumnField(downstream_hit_count, "SciFi hits"),
    },
    collection=downstream_track_collection,
    count=downstream_count,
)
