"""The inputs of lines on downstream tracks and on their vertices, and their fields."""

from hltnode.processing.lhcb.lines.inputs.primary_vertex_fields import primary_vertices
from hltnode.processing.lhcb.secondary_vertices.downstream.collections import (
    DownstreamV0Kind,
    downstream_v0_count,
    downstream_v0_fit,
    downstream_v0_kind,
    downstream_v0_masses,
    downstream_v0_momentum,
    downstream_v0_position,
    downstream_v0_pv,
    downstream_v0_tracks,
)
from hltnode.processing.lhcb.secondary_vertices.downstream.collections import (
    downstream_v0s as downstream_v0_collection,
)
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
from hltnode.processing.selection.lines.inputs import ColumnField, DerivedField, Input, RelatedField, exists

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


def _of_kind(kind: DownstreamV0Kind) -> DerivedField:
    return DerivedField(lambda v: (v.kind & int(kind)) != 0, f"true for candidates with {kind.name}")


downstream_v0s = Input(
    "downstream V0s",
    "vertices of two downstream tracks of opposite charges, of the sequence hlt1_2026",
    {
        "track1": RelatedField(downstream_tracks, ColumnField(downstream_v0_tracks, "", element=0), "its first track"),
        "track2": RelatedField(downstream_tracks, ColumnField(downstream_v0_tracks, "", element=1), "its second track"),
        "pv": RelatedField(
            primary_vertices, ColumnField(downstream_v0_pv, ""), "the primary vertex nearest to the flight"
        ),
        "has_pv": DerivedField(lambda v: exists(v.pv), "true: each has a pv"),
        **{name: ColumnField(column, "position", LENGTH) for name, column in downstream_v0_position.items()},
        "chi2": ColumnField(downstream_v0_fit["chi2"], "chi2 of the fit, one degree of freedom"),
        "doca": ColumnField(downstream_v0_fit["doca"], "smallest distance of the tracks", LENGTH),
        "ip": ColumnField(downstream_v0_fit["ip"], "impact parameter of the line of flight", LENGTH),
        **{
            name: ColumnField(downstream_v0_momentum[name], "momentum of both tracks at the vertex", ENERGY)
            for name in ("px", "py", "pz", "pt")
        },
        "min_pt": ColumnField(downstream_v0_momentum["min_pt"], "smaller pt of the tracks at the vertex", ENERGY),
        "p": DerivedField(lambda v: sqrt(v.px * v.px + v.py * v.py + v.pz * v.pz), "momentum of both tracks"),
        "rho": DerivedField(lambda v: sqrt(v.x * v.x + v.y * v.y), "distance from the z axis"),
        "dz": DerivedField(lambda v: v.z - v.pv.z, "flight along z"),
        "m_pipi": ColumnField(downstream_v0_masses["m_pipi"], "mass of two pions", ENERGY),
        "m_ppi": ColumnField(
            downstream_v0_masses["m_ppi"], "mass of a proton (the track with more momentum) and a pion", ENERGY
        ),
        "m_ee": ColumnField(downstream_v0_masses["m_ee"], "mass of two electrons", ENERGY),
        "kind": ColumnField(downstream_v0_kind, "bits of DownstreamV0Kind"),
        "is_ks": _of_kind(DownstreamV0Kind.DOWNSTREAM_KS),
        "is_lambda": _of_kind(DownstreamV0Kind.DOWNSTREAM_LAMBDA),
        "is_photon": _of_kind(DownstreamV0Kind.DOWNSTREAM_PHOTON),
    },
    collection=downstream_v0_collection,
    count=downstream_v0_count,
    constituents=("track1", "track2"),
)
