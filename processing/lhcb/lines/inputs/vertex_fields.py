"""The inputs of lines on vertices of two long tracks, and their fields."""

from hltnode.processing.lhcb.lines.inputs.field_groups import has_field, number_fields
from hltnode.processing.lhcb.lines.inputs.primary_vertex_fields import primary_vertices
from hltnode.processing.lhcb.lines.inputs.track_fields import long_tracks
from hltnode.processing.lhcb.secondary_vertices.collections import (
    VertexKind,
    v0_pair_count,
    v0_pair_doca,
    v0_pair_mass,
    v0_pair_vertices,
    vertex_count,
    vertex_covariance,
    vertex_fit,
    vertex_flight,
    vertex_kind,
    vertex_masses,
    vertex_momentum,
    vertex_of_tracks,
    vertex_position,
    vertex_pv,
    vertex_tracks_of,
)
from hltnode.processing.lhcb.secondary_vertices.collections import (
    two_track_vertices as two_track_vertex_collection,
)
from hltnode.processing.lhcb.secondary_vertices.collections import (
    v0_pairs as v0_pair_collection,
)
from hltnode.processing.selection.expressions.functions import sqrt
from hltnode.processing.selection.expressions.units import ENERGY, LENGTH, NO_UNIT
from hltnode.processing.selection.lines.inputs import (
    ColumnField,
    DerivedField,
    Input,
    RelatedField,
)


def _of_kind(kind: VertexKind) -> DerivedField:
    return DerivedField(lambda v: (v.kind & int(kind)) != 0, f"true for candidates with {kind.name}")


two_track_vertices = Input(
    "two-track vertices",
    "vertices of two long tracks, of all kinds",
    {
        "track1": RelatedField(long_tracks, ColumnField(vertex_tracks_of, "", element=0), "its first track"),
        "track2": RelatedField(long_tracks, ColumnField(vertex_tracks_of, "", element=1), "its second track"),
        "pv": RelatedField(primary_vertices, ColumnField(vertex_pv, ""), "the primary vertex nearest to the flight"),
        "has_pv": has_field("pv"),
        **number_fields(vertex_position, dict.fromkeys(("x", "y", "z"), (LENGTH, "position"))),
        **{
            f"_{name}": ColumnField(column, "covariance", LENGTH.to_the(2))
            for name, column in vertex_covariance.items()
        },
        "rho": DerivedField(lambda v: sqrt(v.x * v.x + v.y * v.y), "distance from the z axis"),
        **number_fields(
            vertex_fit,
            {
                "chi2": (NO_UNIT, "chi2 of the fit, one degree of freedom"),
                "doca": (LENGTH, "smallest distance of the tracks"),
            },
        ),
        **number_fields(vertex_momentum, dict.fromkeys(("px", "py", "pz", "pt"), (ENERGY, "momentum of both tracks"))),
        "p": DerivedField(lambda v: sqrt(v.px * v.px + v.py * v.py + v.pz * v.pz), "momentum of both tracks"),
        **number_fields(
            vertex_flight,
            {
                "ip": (LENGTH, "impact parameter of the line of flight"),
                "fd": (LENGTH, "distance of flight"),
                "fd_chi2": (NO_UNIT, "chi2 of the distance of flight"),
                "eta": (NO_UNIT, "pseudorapidity of the flight"),
                "dira": (NO_UNIT, "cosine of the angle between flight and momentum"),
                "m_corr": (ENERGY, "corrected mass"),
            },
        ),
        "dz": DerivedField(lambda v: v.z - v.pv.z, "flight along z"),
        **number_fields(
            vertex_masses,
            {
                "m_pipi": (ENERGY, "mass of two pions"),
                "m_kpi": (ENERGY, "mass of a kaon (first track) and a pion"),
                "m_pik": (ENERGY, "mass of a pion and a kaon (second track)"),
                "m_kk": (ENERGY, "mass of two kaons"),
                "m_ppi": (ENERGY, "mass of a proton (first track) and a pion"),
                "m_pip": (ENERGY, "mass of a pion and a proton (second track)"),
                "m_mumu": (ENERGY, "mass of two muons"),
            },
        ),
        **number_fields(
            vertex_of_tracks,
            {
                "min_pt": (ENERGY, "smaller pt of the tracks"),
                "sum_pt": (ENERGY, "sum of pt of the tracks"),
                "min_p": (ENERGY, "smaller p of the tracks"),
                "min_ip": (LENGTH, "smaller ip of the tracks"),
                "min_ip_chi2": (NO_UNIT, "smaller ip_chi2 of the tracks"),
            },
        ),
        "kind": ColumnField(vertex_kind, "bits of VertexKind"),
        "is_displaced": _of_kind(VertexKind.VERTEX_DISPLACED),
        "is_ks": _of_kind(VertexKind.VERTEX_KS),
        "is_lambda": _of_kind(VertexKind.VERTEX_LAMBDA),
        "is_dimuon": _of_kind(VertexKind.VERTEX_DIMUON),
        "same_sign": _of_kind(VertexKind.VERTEX_SAME_SIGN),
    },
    collection=two_track_vertex_collection,
    count=vertex_count,
    constituents=("track1", "track2"),
)
displaced_vertices = two_track_vertices.those(
    "displaced vertices", "vertices of two displaced tracks", lambda v: v.is_displaced
)
v0s = two_track_vertices.those("V0s", "candidates of K0S and Λ", lambda v: v.is_ks | v.is_lambda)
dimuons = two_track_vertices.those(
    "dimuons",
    "vertices of two muons",
    lambda v: v.is_dimuon,
    {"mass": DerivedField(lambda v: v.m_mumu, "mass of two muons")},
)

v0_pairs = Input(
    "V0 pairs",
    "two V0 without a common track",
    {
        "first": RelatedField(two_track_vertices, ColumnField(v0_pair_vertices, "", element=0), "its first V0"),
        "second": RelatedField(two_track_vertices, ColumnField(v0_pair_vertices, "", element=1), "its second V0"),
        "mass": ColumnField(v0_pair_mass, "mass of both", ENERGY),
        "doca": ColumnField(v0_pair_doca, "smallest distance of the lines of flight", LENGTH),
    },
    collection=v0_pair_collection,
    count=v0_pair_count,
    constituents=("first", "second"),
)
