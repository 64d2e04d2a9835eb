"""The inputs of HLT1 lines: collections of candidates and their fields."""

from typing import Any

from hltnode.processing.algorithms.decode_odin import odin
from hltnode.processing.framework.batch import event_flags
from hltnode.processing.framework.flags import EventFlag
from hltnode.processing.lhcb.calorimeter.collections import (
    cluster_count as ecal_cluster_count,
)
from hltnode.processing.lhcb.calorimeter.collections import (
    cluster_e19,
    cluster_energy,
    cluster_et,
    cluster_position,
    cluster_seed,
    dielectron_count,
    dielectron_numbers,
    dielectron_pv,
    dielectron_same_sign,
    dielectron_tracks,
    ecal_energy,
    ecal_max_adc,
    electron_count,
    long_brem_energy,
    long_brem_et,
    long_ecal_energy,
    long_electron_nn,
    long_eop,
    long_in_ecal,
    long_is_electron,
    photon_pair_clusters,
    photon_pair_count,
    photon_pair_numbers,
)
from hltnode.processing.lhcb.calorimeter.collections import (
    dielectrons as dielectron_collection,
)
from hltnode.processing.lhcb.calorimeter.collections import (
    ecal_clusters as ecal_cluster_collection,
)
from hltnode.processing.lhcb.calorimeter.collections import (
    photon_pairs as photon_pair_collection,
)
from hltnode.processing.lhcb.geometry.ideal_ecal import FIRST_CELLS
from hltnode.processing.lhcb.jets.collections import jet_count, jet_numbers, jet_parts, jet_pv, jet_seed
from hltnode.processing.lhcb.jets.collections import jets as jet_collection
from hltnode.processing.lhcb.lines.downstream_fields import downstream_tracks, downstream_v0s
from hltnode.processing.lhcb.lines.half_fields import half_pairs, half_vertices
from hltnode.processing.lhcb.lines.primary_vertex_fields import primary_vertices
from hltnode.processing.lhcb.lines.stub_fields import muon_stubs
from hltnode.processing.lhcb.muon.collections import (
    FEATURES,
    long_is_muon,
    long_muon_chi2,
    long_muon_features,
    long_muon_nn,
    muon_count,
)
from hltnode.processing.lhcb.primary_vertices.collections import pv_count
from hltnode.processing.lhcb.primary_vertices.halves.collections import half_pair_count
from hltnode.processing.lhcb.raw_data.flags import GLOBAL_EVENT_CUT
from hltnode.processing.lhcb.scifi.collections import scifi_count
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
    cluster_count,
    track_backward,
    track_count,
    track_hit_count,
    track_ip,
    track_ip_chi2,
    track_large_clusters,
    track_pv,
    tracks,
)
from hltnode.processing.selection.expressions.expression import Expression
from hltnode.processing.selection.expressions.functions import atan2, log, minimum, sqrt
from hltnode.processing.selection.expressions.units import ENERGY, LENGTH, NO_UNIT, MeV, Unit
from hltnode.processing.selection.lines.inputs import (
    ColumnField,
    DerivedField,
    FieldOf,
    Input,
    ModelField,
    RelatedField,
    any_of,
    exists,
)


def _numbers(columns: dict[str, Any], units: dict[str, tuple[Unit, str]]) -> dict[str, FieldOf]:
    """Fields of columns that have the same name."""
    return {name: ColumnField(columns[name], text, unit) for name, (unit, text) in units.items()}


def _has(member: str) -> DerivedField:
    return DerivedField(lambda candidate: exists(getattr(candidate, member)), f"true if there is a {member}")


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
        **_numbers(
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
        "has_pv": _has("pv"),
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
        **_numbers(
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
        "has_pv": _has("pv"),
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

ecal_clusters = Input(
    "ECAL clusters",
    "clusters of the electromagnetic calorimeter",
    {
        **_numbers(cluster_position, dict.fromkeys(("x", "y"), (LENGTH, "mean of its cells"))),
        "energy": ColumnField(cluster_energy, "energy", ENERGY),
        "et": ColumnField(cluster_et, "transverse energy", ENERGY),
        "e19": ColumnField(cluster_e19, "energy of the seed over that of the cluster"),
        "seed": ColumnField(cluster_seed, "number of the cell with most energy"),
        "is_outer": DerivedField(lambda c: c.seed < FIRST_CELLS[1], "true for a seed in the outer region"),
        "is_middle": DerivedField(
            lambda c: (c.seed >= FIRST_CELLS[1]) & (c.seed < FIRST_CELLS[2]), "true for a seed in the middle region"
        ),
        "is_inner": DerivedField(lambda c: c.seed >= FIRST_CELLS[2], "true for a seed in the inner region"),
    },
    collection=ecal_cluster_collection,
    count=ecal_cluster_count,
)
photons = ecal_clusters.those(
    "photons",
    "narrow clusters of the electromagnetic calorimeter, those of electrons included",
    lambda c: (c.et > 400.0 * MeV) & (c.e19 > 0.6),
)

photon_pairs = Input(
    "photon pairs",
    "two photons from the origin",
    {
        "first": RelatedField(ecal_clusters, ColumnField(photon_pair_clusters, "", element=0), "its first photon"),
        "second": RelatedField(ecal_clusters, ColumnField(photon_pair_clusters, "", element=1), "its second photon"),
        **_numbers(
            photon_pair_numbers,
            {
                "mass": (ENERGY, "mass of both"),
                "pt": (ENERGY, "transverse momentum of both"),
                "eta": (NO_UNIT, "pseudorapidity of both, at most 20"),
            },
        ),
        "min_et": DerivedField(lambda v: minimum(v.first.et, v.second.et), "smaller transverse energy"),
        "sum_et": DerivedField(lambda v: v.first.et + v.second.et, "sum of the transverse energies"),
        "min_e19": DerivedField(lambda v: minimum(v.first.e19, v.second.e19), "smaller e19"),
    },
    collection=photon_pair_collection,
    count=photon_pair_count,
    constituents=("first", "second"),
)

dielectrons = Input(
    "dielectrons",
    "vertices of two electrons; momenta and mass include bremsstrahlung",
    {
        "track1": RelatedField(long_tracks, ColumnField(dielectron_tracks, "", element=0), "its first track"),
        "track2": RelatedField(long_tracks, ColumnField(dielectron_tracks, "", element=1), "its second track"),
        "pv": RelatedField(
            primary_vertices, ColumnField(dielectron_pv, ""), "the primary vertex nearest to the flight"
        ),
        "has_pv": _has("pv"),
        **_numbers(
            dielectron_numbers,
            {
                **dict.fromkeys(("x", "y", "z"), (LENGTH, "position")),
                "chi2": (NO_UNIT, "chi2 of the fit, one degree of freedom"),
                "doca": (LENGTH, "smallest distance of the tracks"),
                "ip": (LENGTH, "impact parameter of the line of flight; 0 without a primary vertex"),
                **dict.fromkeys(("px", "py", "pz", "pt"), (ENERGY, "momentum of both electrons")),
                "mass": (ENERGY, "mass of two electrons"),
                "m_pipi": (ENERGY, "mass of two pions, without bremsstrahlung"),
            },
        ),
        "rho": DerivedField(lambda v: sqrt(v.x * v.x + v.y * v.y), "distance from the z axis"),
        "dz": DerivedField(lambda v: v.z - v.pv.z, "flight along z"),
        "same_sign": DerivedField(lambda v: v._same_sign != 0, "true for equal charges"),
        "_same_sign": ColumnField(dielectron_same_sign, "1 for equal charges"),
        "min_pt": DerivedField(lambda v: minimum(v.track1.brem_pt, v.track2.brem_pt), "smaller pt of the electrons"),
        "sum_pt": DerivedField(lambda v: v.track1.brem_pt + v.track2.brem_pt, "sum of pt of the electrons"),
        "min_p": DerivedField(lambda v: minimum(v.track1.brem_p, v.track2.brem_p), "smaller p of the electrons"),
        "min_electron_nn": DerivedField(
            lambda v: minimum(v.track1.electron_nn, v.track2.electron_nn),
            "smaller response of the electron network to its tracks",
        ),
        "min_ip": DerivedField(lambda v: minimum(v.track1.ip, v.track2.ip), "smaller ip of the tracks"),
        "min_ip_chi2": DerivedField(
            lambda v: minimum(v.track1.ip_chi2, v.track2.ip_chi2), "smaller ip_chi2 of the tracks"
        ),
    },
    collection=dielectron_collection,
    count=dielectron_count,
    constituents=("track1", "track2"),
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
        "has_pv": _has("pv"),
        **_numbers(vertex_position, dict.fromkeys(("x", "y", "z"), (LENGTH, "position"))),
        **{
            f"_{name}": ColumnField(column, "covariance", LENGTH.to_the(2))
            for name, column in vertex_covariance.items()
        },
        "rho": DerivedField(lambda v: sqrt(v.x * v.x + v.y * v.y), "distance from the z axis"),
        **_numbers(
            vertex_fit,
            {
                "chi2": (NO_UNIT, "chi2 of the fit, one degree of freedom"),
                "doca": (LENGTH, "smallest distance of the tracks"),
            },
        ),
        **_numbers(vertex_momentum, dict.fromkeys(("px", "py", "pz", "pt"), (ENERGY, "momentum of both tracks"))),
        "p": DerivedField(lambda v: sqrt(v.px * v.px + v.py * v.py + v.pz * v.pz), "momentum of both tracks"),
        **_numbers(
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
        **_numbers(
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
        **_numbers(
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


jets = Input(
    "jets",
    "tracks of one primary vertex and photons in a cone around the hardest track, of the sequence hlt1_2026",
    {
        "seed": RelatedField(long_tracks, ColumnField(jet_seed, ""), "its track of the highest pt"),
        "pv": RelatedField(primary_vertices, ColumnField(jet_pv, ""), "the primary vertex of its tracks"),
        **_numbers(
            jet_numbers,
            {
                "pt": (ENERGY, "sum of the pt of its tracks and photons"),
                "eta": (NO_UNIT, "mean pseudorapidity of its tracks and photons, weighted with pt"),
                "phi": (NO_UNIT, "mean azimuth, weighted with pt"),
            },
        ),
        "n_tracks": ColumnField(jet_parts["n_tracks"], "long tracks"),
        "n_photons": ColumnField(jet_parts["n_photons"], "photons"),
        "n_constituents": DerivedField(lambda j: j.n_tracks + j.n_photons, "tracks and photons"),
    },
    collection=jet_collection,
    count=jet_count,
    constituents=("seed",),
)


def _without(name: str, mask: int) -> DerivedField:
    return DerivedField(lambda e: (e.flags & mask) == 0, f"true for events without the flag {name}")


event = Input(
    "events",
    "the event as a whole",
    {
        **{
            name: ColumnField(odin, text, member=name)
            for name, text in {
                "run": "run",
                "event_type": "bits of the ODIN event type",
                "crossing_type": "0 no beam, 1 beam 1, 2 beam 2, 3 both",
                "bunch_id": "bunch crossing",
                "orbit": "orbit of the LHC since the start of the run",
                "tae_half_window": "number of crossings on either side that are read out with this one",
                "gps_time_low": "lower word of the time in µs",
                "gps_time_high": "upper word of the time in µs",
                "event_id_low": "lower word of the event number",
                "event_id_high": "upper word of the event number",
            }.items()
        },
        "flags": ColumnField(event_flags, "flags of the event, one bit each"),
        "_tae_central": ColumnField(odin, "1 for the central one of several crossings", member="tae_central"),
        "is_tae_central": DerivedField(lambda e: e._tae_central != 0, "true for the central one of several crossings"),
        "has_odin": _without("odin_error", int(EventFlag.ODIN_ERROR)),
        "passes_gec": _without(GLOBAL_EVENT_CUT.name, GLOBAL_EVENT_CUT.mask),
        "n_velo_clusters": ColumnField(cluster_count, "VELO clusters"),
        "n_velo_tracks": ColumnField(track_count, "VELO tracks"),
        "n_pvs": ColumnField(pv_count, "primary vertices"),
        "n_half_pairs": ColumnField(half_pair_count, "pairs of vertices of both VELO halves"),
        "n_scifi_hits": ColumnField(scifi_count, "SciFi hits"),
        "n_muon_hits": ColumnField(muon_count, "muon hits"),
        "n_long_tracks": ColumnField(long_count, "long tracks"),
        "n_vertices": ColumnField(vertex_count, "two-track vertices"),
        "n_ecal_clusters": ColumnField(ecal_cluster_count, "clusters of the electromagnetic calorimeter"),
        "n_electrons": ColumnField(electron_count, "long tracks with the energy of an electron"),
        "n_photon_pairs": ColumnField(photon_pair_count, "pairs of photons"),
        "n_dielectrons": ColumnField(dielectron_count, "vertices of two electrons"),
        "n_jets": ColumnField(jet_count, "jets"),
        "ecal_energy": ColumnField(ecal_energy, "energy of all cells of the electromagnetic calorimeter", ENERGY),
        "ecal_max_adc": ColumnField(ecal_max_adc, "largest ADC count of a cell of the electromagnetic calorimeter"),
    },
)

EVENT_WORDS: tuple[Expression, ...] = tuple(
    getattr(event.candidate(), name)
    for name in ("gps_time_low", "gps_time_high", "run", "event_id_low", "event_id_high")
)
"""The words that identify an event for prescales, in the order of LHCb."""


def any_pv(condition: Any) -> Expression:
    """True if the condition holds for at least one primary vertex of the event."""
    return any_of(primary_vertices, condition)


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
