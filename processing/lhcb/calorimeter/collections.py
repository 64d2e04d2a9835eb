"""The calorimeter's cells and clusters, and the columns of long tracks from it: bounds, shapes and units."""

import numpy as np

from hltnode.processing.framework.batch import events
from hltnode.processing.framework.collections import (
    F32,
    I16,
    U8,
    U16,
    U32,
    Collection,
    Placement,
    Record,
    Role,
    SharedTypes,
    constant_column,
)
from hltnode.processing.lhcb.geometry.ecal import (
    BOARDS_VERSION,
    CARDS_VERSION,
    MAX_CARDS,
    N_PLANES,
    N_SOURCES,
    NO_CARD,
)
from hltnode.processing.lhcb.geometry.ideal_ecal import (
    BOARDS_OF_SOURCE,
    CHANNELS_OF_CARD,
    FIRST_CELLS,
    N_CELLS,
    N_NEIGHBOURS,
    NO_CELL,
    SHOWER_MAXIMUM_Z,
)
from hltnode.processing.lhcb.readout import version_sizes
from hltnode.processing.lhcb.tracks.long.collections import long_tracks
from hltnode.protocol.lhcb.bank_types import LhcbBankType
from hltnode.protocol.lhcb.bank_versions import EcalVersion
from hltnode.protocol.lhcb.banks.ecal import BOARD_WORDS, SKIPPED_WORDS, VOID_ADC

MAX_CLUSTERS_PER_EVENT = N_CELLS // 4
"""Each region is tiled by blocks of 2 by 2 cells that are neighbours of each other; a block has one seed at most."""

MAX_PHOTON_PAIRS_PER_EVENT = 4096
"""All pairs of 91 photons. The densest of seven recorded events has 50."""
MAX_DIELECTRONS_PER_EVENT = 256

ECAL_GEOMETRY = Record(
    "ecal_geometry",
    np.dtype(
        [
            ("read_out", "<u4"),
            ("code_offset", "<u4"),
            ("n_cards", "<u4"),
            ("pedestal", "<f4"),
            ("module_size", "<f4"),
            ("to_local", "<f4", (3, 4)),
            ("planes", "<f4", (N_PLANES, 4)),
            ("x", "<f4", (N_CELLS,)),
            ("y", "<f4", (N_CELLS,)),
            ("gain", "<f4", (N_CELLS,)),
            ("neighbours", "<u2", (N_CELLS, N_NEIGHBOURS)),
            ("cell_of_channel", "<u2", (MAX_CARDS, CHANNELS_OF_CARD)),
            ("card_of_slot", "<u2", (N_SOURCES, BOARDS_OF_SOURCE)),
            ("is_card", "u1", (MAX_CARDS,)),
            ("sine", "<f4", (N_CELLS,)),
        ]
    ),
    {
        "read_out": "bits of ecal_read_out_cards, of ecal_read_out_boards, or of both",
        "code_offset": "code of card 0",
        "pedestal": "ADC counts",
        "module_size": "mm, of a cell of the outer region",
        "to_local": "rotation and translation (mm), row by row",
        "planes": "front, shower maximum, back: a x + b y + c z + d = 0",
        "x": "mm, centre",
        "y": "mm, centre",
        "gain": "MeV per count",
        "neighbours": "or no_ecal_cell",
        "cell_of_channel": "or no_ecal_cell",
        "card_of_slot": "by source, or no_ecal_card",
        "is_card": "0 for a code that no card has",
        "sine": "of the angle between the beam and the line from the origin to the cell",
    },
)
"""The calorimeter for kernels: EcalGeometry.to_bytes()."""

ecal_types = SharedTypes(
    __file__,
    "ecal_types",
    records=(ECAL_GEOMETRY,),
    sizes={
        "n_ecal_cells": N_CELLS,
        "first_middle_ecal_cell": FIRST_CELLS[1],
        "first_inner_ecal_cell": FIRST_CELLS[2],
        "n_ecal_neighbours": N_NEIGHBOURS,
        "no_ecal_cell": NO_CELL,
        "ecal_void_adc": -VOID_ADC,
        "max_ecal_cards": MAX_CARDS,
        "no_ecal_card": NO_CARD,
        "n_ecal_sources": N_SOURCES,
        "n_ecal_slots": BOARDS_OF_SOURCE,
        "n_ecal_channels": CHANNELS_OF_CARD,
        "ecal_skipped_words": SKIPPED_WORDS,
        "ecal_board_words": BOARD_WORDS,
        "ecal_read_out_cards": CARDS_VERSION,
        "ecal_read_out_boards": BOARDS_VERSION,
        "ecal_cards_bank": int(LhcbBankType.ECAL_PACKED),
        "ecal_boards_bank": int(LhcbBankType.CALO),
        **version_sizes("ecal", EcalVersion),
        "max_ecal_clusters": MAX_CLUSTERS_PER_EVENT,
        "max_photon_pairs": MAX_PHOTON_PAIRS_PER_EVENT,
        "max_dielectrons": MAX_DIELECTRONS_PER_EVENT,
        "ecal_shower_maximum_z": SHOWER_MAXIMUM_Z,
    },
)
"""ecal_void_adc: minus the value of a cell that was not read out. ecal_shower_maximum_z in mm."""

ecal_geometry = constant_column("ecal_geometry", ECAL_GEOMETRY)

ecal_adc = events.per_event("ecal_adc", I16, width=N_CELLS)
"""[event][6016]: ADC count of each cell, or VOID_ADC for a cell that was not read out."""
ecal_cell_count = events.per_event("ecal_cells", U32, role=Role.OUTPUT)
"""Cells that were read out."""
ecal_energy = events.per_event("ecal_energy", F32)
"""Sum of the energies of all cells, MeV; noise may make it negative."""
ecal_energy_count = events.per_event("ecal_energy_mev", U32, role=Role.OUTPUT)
"""The same in whole MeV, 0 to 2e9."""

ecal_max_adc = events.per_event("ecal_max_adc", U32)
"""Largest ADC count of a cell; 0 if none is above 0."""

ecal_clusters = Collection(
    "ecal_clusters",
    capacity=lambda limits: limits.events * MAX_CLUSTERS_PER_EVENT,
    placement=Placement.fixed(MAX_CLUSTERS_PER_EVENT),
    max_per_event=MAX_CLUSTERS_PER_EVENT,
)
"""A seed and its neighbours, ascending by seed."""
cluster_count = ecal_clusters.per_event("count", U32, role=Role.OUTPUT)
cluster_seed = ecal_clusters.column("seed", U16)
"""Cell of the seed."""
cluster_position = {name: ecal_clusters.column(name, F32) for name in ("x", "y")}
"""mm, mean of its cells weighted with their energies."""
cluster_energy = ecal_clusters.column("energy", F32)
cluster_et = ecal_clusters.column("et", F32)
"""Energy and transverse energy, MeV."""
cluster_e19 = ecal_clusters.column("e19", F32)
"""Energy of the seed over that of the cluster."""

long_in_ecal = long_tracks.column("in_ecal", U8)
"""1 for a track that crosses a cell that was read out, at the plane of the shower maximum."""
long_ecal_energy = long_tracks.column("ecal_energy", F32)
"""Energy of the cells that the track crosses, MeV."""
long_eop = long_tracks.column("eop", F32)
"""The same energy over the momentum."""
long_is_electron = long_tracks.column("is_electron", U8)
"""1 for a track whose energy over momentum is above the configured minimum."""
long_brem_energy = long_tracks.column("brem_energy", F32)
long_brem_et = long_tracks.column("brem_et", F32)
"""Energy and transverse energy of the cells in the direction of its VELO track, MeV; both are 0 below the configured
minimum of the transverse energy."""
long_ecal_cell = long_tracks.column("ecal_cell", U16)
"""The cell that the track crosses at the plane of the shower maximum, or NO_CELL if none was read out there."""
long_shower = {
    f"shower_{name}": long_tracks.column(f"shower_{name}", F32)
    for name in ("energy", "dx", "dy", "spread_x", "spread_y", "peak")
}
"""The shower of this cell and its neighbours, those with energy: MeV; mean place - that of the track, and standard
deviation, in widths of the cell; largest energy of a cell over that of the shower. 0 without energy."""
long_electron_nn = long_tracks.column("electron_nn", F32)
"""Response of the electron network, 0 to 1; 0 without a shower or a momentum."""
electron_count = events.per_event("electrons", U32, role=Role.OUTPUT)
"""Long tracks with is_electron."""

photon_pairs = Collection(
    "photon_pairs",
    capacity=lambda limits: limits.events * MAX_PHOTON_PAIRS_PER_EVENT,
    placement=Placement.fixed(MAX_PHOTON_PAIRS_PER_EVENT),
    max_per_event=MAX_PHOTON_PAIRS_PER_EVENT,
)
"""Two photons, ascending by the first, then by the second cluster. An event with too many is flagged; the first ones
are kept."""
photon_pair_count = photon_pairs.per_event("count", U32, role=Role.OUTPUT)
photon_pair_clusters = photon_pairs.column("clusters", U16, width=2)
"""[pair][2]: numbers of its clusters in the event, the first one is the smaller."""
photon_pair_numbers = {name: photon_pairs.column(name, F32) for name in ("mass", "pt", "eta")}
"""Mass and transverse momentum in MeV, pseudorapidity (at most 20) of two photons from the origin."""

dielectrons = Collection(
    "dielectrons",
    capacity=lambda limits: limits.events * MAX_DIELECTRONS_PER_EVENT,
    placement=Placement.fixed(MAX_DIELECTRONS_PER_EVENT),
    max_per_event=MAX_DIELECTRONS_PER_EVENT,
)
"""Vertices of two electrons, ascending by the first, then by the second track. An event with too many is flagged; the
first ones are kept."""
dielectron_count = dielectrons.per_event("count", U32, role=Role.OUTPUT)
dielectron_tracks = dielectrons.column("tracks", U16, width=2)
"""[pair][2]: numbers of its long tracks in the event, the first one is the smaller."""
dielectron_same_sign = dielectrons.column("same_sign", U8)
"""1 if both tracks have the same charge."""
dielectron_pv = dielectrons.column("pv", U8)
"""Index of the primary vertex to which the line of flight comes closest, or NO_PV."""
dielectron_numbers = {
    name: dielectrons.column(name, F32)
    for name in ("x", "y", "z", "chi2", "doca", "ip", "px", "py", "pz", "pt", "mass", "m_pipi")
}
"""Position in mm; chi2 of the fit, one degree of freedom; smallest distance of the tracks, and impact parameter of the
line of flight (0 without a primary vertex), mm; momentum and mass with bremsstrahlung; mass of two pions with the
momenta of the tracks alone, MeV."""
