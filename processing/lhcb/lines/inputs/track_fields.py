"""The inputs of lines on tracks of the VELO and on long tracks, and their fields."""

from hltnode.processing.lhcb.calorimeter.collections import (
    long_brem_energy,
    long_brem_et,
    long_ecal_energy,
    long_electron_nn,
    long_eop,
    long_in_ecal,
    long_is_electron,
)
from hltnode.processing.lhcb.lines.inputs.field_groups import has_field, number_fields
from hltnode.processing.lhcb.lines.inputs.primary_vertex_fields import primary_vertices
from hltnode.processing.lhcb.muon.collections import (
    FEATURES,
    long_is_muon,
    long_muon_chi2,
    long_muon_features,
    long_muon_nn,
)
from hltnode.processing.lhcb.tracks.kalman.collections import (
    long_beam_state,
    long_chi2,
    long_full_chi2,
    long_ghost_probability,
    long_ip,
    long_ip_chi2,
    long_pv,
)
from hltnode.processing.lhcb.tracks.long.collections import (
    long_count,
    long_hit_count,
    long_origin,
    long_state,
    long_velo_track,
)
from hltnode.processing.lhcb.tracks.long.collections import (
    long_tracks as long_track_collection,
)
from hltnode.processing.lhcb.velo.collections import (
    beamline_state,
    track_backward,
    track_count,
    track_hit_count,
    track_ip,
    track_ip_chi2,
    track_large_clusters,
    track_pv,
    tracks,
)
from hltnode.processing.selection.expressions.functions import atan2, log, sqrt
from hltnode.processing.selection.expressions.units import ENERGY, LENGTH, NO_UNIT
from hltnode.processing.selection.lines.inputs import (
    ColumnField,
    DerivedField,
    FieldOf,
    Input,
    ModelField,
    RelatedField,
)

_MUON_FEATURES = {
    "dt": "time of the x strip minus that of the y strip, or the time of a single strip",
    "time": "time of the x strip, or of a single strip",
    "crossed": "2 for a crossing of strips, 1 for a single strip, 0 without hits",
    "x": "distance in x, in its error",
    "y": "distance in y, in its error",
}


def _muon_features() -> dict[str, FieldOf]:
    """The features of a long track for LHCb's trees."""
    fields: dict[str, FieldOf] = {}
    for i, name in enumerate(FEATURES):
        _, kind, station = name.split("_")
        text = f"{_MUON_FEATURES[kind]}; of the nearest hit in {station.upper()}"
        fields[name] = ColumnField(long_muon_features, text, element=i)
    return fields


velo_tracks = Input(
    "VELO tracks",
    "tracks of the VELO, without momentum",
    {
        **number_fields(
            beamline_state,
            {
                "x": (LENGTH, "at the closest approach to the beam line"),
                "y": (LENGTH, "at the closest approach to the beam line"),
                "z": (LENGTH, "at the closest approach to the beam line"),
                "tx": (NO_UNIT, "dx/dz"),
                "ty": (NO_UNIT, "dy/dz"),
            },
        ),
        "ip": ColumnField(track_ip, "impact parameter to the nearest primary vertex; 0 without one", LENGTH),
        "ip_chi2": ColumnField(track_ip_chi2, "chi2 of the impact parameter"),
        "pv": RelatedField(primary_vertices, ColumnField(track_pv, ""), "the primary vertex with the smallest ip"),
        "has_pv": has_field("pv"),
        "n_hits": ColumnField(track_hit_count, "hits"),
        "eta": DerivedField(
            lambda t: log((1.0 + sqrt(1.0 + t.tx * t.tx + t.ty * t.ty)) / sqrt(t.tx * t.tx + t.ty * t.ty)),
            "size of the pseudorapidity, also for a track to negative z",
        ),
        "large_clusters": ColumnField(
            track_large_clusters,
            "hits of four pixels or more of a forward track above η = 4.99 with five hits; 0 for others",
        ),
        "backward": DerivedField(lambda t: t._backward != 0, "true for a track to negative z"),
        "_backward": ColumnField(track_backward, "1 for a track to negative z"),
    },
    collection=tracks,
    count=track_count,
)

long_tracks = Input(
    "long tracks",
    "tracks through the magnet",
    {
        **number_fields(
            long_beam_state,
            {
                "x": (LENGTH, "at the closest approach to the beam line"),
                "y": (LENGTH, "at the closest approach to the beam line"),
                "z": (LENGTH, "at the closest approach to the beam line"),
                "tx": (NO_UNIT, "dx/dz"),
                "ty": (NO_UNIT, "dy/dz"),
                "qop": (ENERGY.to_the(-1), "charge over momentum"),
            },
        ),
        **{
            f"_{name}": ColumnField(long_beam_state[name], "covariance", unit)
            for names, unit in ((("c00", "c11"), LENGTH.to_the(2)), (("c20", "c31"), LENGTH), (("c22", "c33"), NO_UNIT))
            for name in names
        },
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
        "_end_x": ColumnField(long_state["x"], "x behind the SciFi tracker", LENGTH),
        "chi2": ColumnField(long_chi2, "chi2 of the fit to the VELO hits per degree of freedom"),
        "full_chi2": ColumnField(long_full_chi2, "chi2 of the fit through the SciFi per degree of freedom"),
        "ip": ColumnField(long_ip, "impact parameter to its primary vertex; 0 without one", LENGTH),
        "ip_chi2": ColumnField(
            long_ip_chi2, "impact parameter chi2, the smallest to any primary vertex; 0 without one"
        ),
        "pv": RelatedField(primary_vertices, ColumnField(long_pv, ""), "the primary vertex with the smallest ip_chi2"),
        "has_pv": has_field("pv"),
        "velo": RelatedField(velo_tracks, ColumnField(long_velo_track, ""), "its VELO track"),
        "ghost_probability": ColumnField(long_ghost_probability, "probability that it belongs to no particle"),
        "is_muon": DerivedField(lambda t: t._is_muon != 0, "true for a track with the hits of a muon"),
        "_is_muon": ColumnField(long_is_muon, "1 for a muon"),
        "muon_chi2": ColumnField(long_muon_chi2, "correlated chi2 of the nearest muon hits"),
        "muon_nn": ColumnField(long_muon_nn, "response of the muon network, 0 to 1; 0 without the hits of a muon"),
        "muon_catboost": ModelField(FEATURES, "sum of the trees of the configured model file"),
        **_muon_features(),
        "in_ecal": DerivedField(lambda t: t._in_ecal != 0, "true for a track that crosses the calorimeter"),
        "_in_ecal": ColumnField(long_in_ecal, "1 for a track that crosses the calorimeter"),
        "ecal_energy": ColumnField(long_ecal_energy, "energy of the calorimeter's cells that it crosses", ENERGY),
        "eop": ColumnField(long_eop, "the same energy over the momentum"),
        "is_electron": DerivedField(lambda t: t._is_electron != 0, "true for a track with the energy of an electron"),
        "_is_electron": ColumnField(long_is_electron, "1 for an electron"),
        "electron_nn": ColumnField(long_electron_nn, "response of the electron network, 0 to 1"),
        "brem_energy": ColumnField(long_brem_energy, "energy of bremsstrahlung in the direction of its start", ENERGY),
        "brem_et": ColumnField(long_brem_et, "transverse energy of the same", ENERGY),
        "brem_p": DerivedField(lambda t: t.p + t.brem_energy, "momentum with bremsstrahlung"),
        "brem_pt": DerivedField(lambda t: t.pt + t.brem_et, "transverse momentum with bremsstrahlung"),
        "n_scifi_hits": ColumnField(long_hit_count, "SciFi hits"),
        "origin": ColumnField(long_origin, "0 forward, 1 forward without UT, 2 matched"),
    },
    collection=long_track_collection,
    count=long_count,
)

MODEL_FIELDS = {"muon_catboost": len(FEATURES)}
"""Fields whose trees a trigger configuration may name, with the number of their features."""

muons = long_tracks.those("muons", "long tracks with hits of a muon", lambda t: t.is_muon)
electrons = long_tracks.those(
    "electrons", "long tracks with the energy of an electron in the calorimeter", lambda t: t.is_electron
)
