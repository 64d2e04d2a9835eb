"""The inputs of lines on the calorimeter: clusters, photons, and vertices of electrons, and their fields."""

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
from hltnode.processing.lhcb.lines.inputs.field_groups import has_field, number_fields
from hltnode.processing.lhcb.lines.inputs.primary_vertex_fields import primary_vertices
from hltnode.processing.lhcb.lines.inputs.track_fields import long_tracks
from hltnode.processing.selection.expressions.functions import minimum, sqrt
from hltnode.processing.selection.expressions.units import ENERGY, LENGTH, NO_UNIT, MeV
from hltnode.processing.selection.lines.inputs import (
    ColumnField,
    DerivedField,
    Input,
    RelatedField,
)

ecal_clusters = Input(
    "ECAL clusters",
    "clusters of the electromagnetic calorimeter",
    {
        **number_fields(cluster_position, dict.fromkeys(("x", "y"), (LENGTH, "mean of its cells"))),
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
        **number_fields(
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
        "has_pv": has_field("pv"),
        **number_fields(
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
