"""HLT1, the chain of LHCb: its sequences of algorithms, their input and output."""

from collections.abc import Mapping
from dataclasses import replace
from pathlib import Path
from types import MappingProxyType

import numpy as np

from hltnode.processing.algorithms.decode_odin import decode_odin, odin_types
from hltnode.processing.algorithms.fragment_offsets import fragment_offsets
from hltnode.processing.framework.collections import PROCESSING, Column
from hltnode.processing.framework.declaration import Algorithm, AlgorithmSequence
from hltnode.processing.framework.kernel_sources import KernelSources
from hltnode.processing.lhcb.calorimeter.collections import (
    cluster_count as ecal_cluster_count,
)
from hltnode.processing.lhcb.calorimeter.collections import (
    dielectron_count,
    ecal_cell_count,
    ecal_energy_count,
    ecal_types,
    electron_count,
    photon_pair_count,
)
from hltnode.processing.lhcb.calorimeter.decode_cells import decode_cells as ecal_decode_cells
from hltnode.processing.lhcb.calorimeter.electron_network import electron_network_types
from hltnode.processing.lhcb.calorimeter.find_clusters import find_clusters as ecal_find_clusters
from hltnode.processing.lhcb.calorimeter.find_electrons import find_electrons
from hltnode.processing.lhcb.calorimeter.identify_electrons import identify_electrons
from hltnode.processing.lhcb.calorimeter.measure_showers import measure_showers
from hltnode.processing.lhcb.calorimeter.pair_electrons import pair_electrons
from hltnode.processing.lhcb.calorimeter.pair_photons import pair_photons
from hltnode.processing.lhcb.channels import counted_channels
from hltnode.processing.lhcb.conditions import CONDITIONS
from hltnode.processing.lhcb.detector_constants import DETECTOR_CONSTANTS
from hltnode.processing.lhcb.geometry.velo import VeloGeometry
from hltnode.processing.lhcb.jets.collections import jet_count, jet_types
from hltnode.processing.lhcb.jets.find_jets import find_jets
from hltnode.processing.lhcb.lines.histograms import HLT1_HISTOGRAMS
from hltnode.processing.lhcb.lines.inputs.by_name import INPUTS, USUAL_FIELDS
from hltnode.processing.lhcb.lines.inputs.event_fields import EVENT_WORDS
from hltnode.processing.lhcb.lines.menu import HLT1_MENU
from hltnode.processing.lhcb.lines.reports import REPORTED
from hltnode.processing.lhcb.lines.routing import ROUTING_RULES
from hltnode.processing.lhcb.luminosity.collections import LUMI_SUMMARY, lumi_types
from hltnode.processing.lhcb.luminosity.decode_plume import decode_plume
from hltnode.processing.lhcb.luminosity.fill_counters import fill_counters
from hltnode.processing.lhcb.muon.collections import muon_count, muon_types, stub_count
from hltnode.processing.lhcb.muon.correlated_chi2 import correlated_chi2
from hltnode.processing.lhcb.muon.cross_strips import cross_strips
from hltnode.processing.lhcb.muon.find_cells import find_cells as muon_find_cells
from hltnode.processing.lhcb.muon.find_stubs import find_stubs
from hltnode.processing.lhcb.muon.hit_offsets import hit_offsets as muon_hit_offsets
from hltnode.processing.lhcb.muon.identify_tracks import identify_tracks as identify_muons
from hltnode.processing.lhcb.muon.is_muon import is_muon
from hltnode.processing.lhcb.muon.measure_tracks import measure_tracks as measure_muons
from hltnode.processing.lhcb.muon.muon_network import muon_network_types
from hltnode.processing.lhcb.primary_vertices.cleanup import cleanup
from hltnode.processing.lhcb.primary_vertices.collections import pv_count, pv_types
from hltnode.processing.lhcb.primary_vertices.extrapolate import extrapolate
from hltnode.processing.lhcb.primary_vertices.halves.collections import half_pair_count, half_types, half_vertex_count
from hltnode.processing.lhcb.primary_vertices.halves.find_vertices import find_vertices as find_half_vertices
from hltnode.processing.lhcb.primary_vertices.halves.pair_vertices import pair_vertices as pair_half_vertices
from hltnode.processing.lhcb.primary_vertices.halves.split_tracks import split_tracks as split_half_tracks
from hltnode.processing.lhcb.primary_vertices.impact_parameter import impact_parameter as velo_impact_parameter
from hltnode.processing.lhcb.primary_vertices.multi_fit import multi_fit
from hltnode.processing.lhcb.primary_vertices.peaks import peaks
from hltnode.processing.lhcb.raw_data.flags import flag_types
from hltnode.processing.lhcb.raw_data.global_event_cut import global_event_cut
from hltnode.processing.lhcb.raw_data.missing_detectors import missing_detectors
from hltnode.processing.lhcb.raw_data.raw_data_types import raw_data_types
from hltnode.processing.lhcb.readout import LHCB_READOUT
from hltnode.processing.lhcb.scifi.collections import scifi_count, scifi_types
from hltnode.processing.lhcb.scifi.decode_clusters import decode_clusters
from hltnode.processing.lhcb.scifi.hit_offsets import hit_offsets as scifi_hit_offsets
from hltnode.processing.lhcb.secondary_vertices.collections import vertex_count, vertex_types
from hltnode.processing.lhcb.secondary_vertices.downstream.collections import downstream_v0_count, downstream_v0_types
from hltnode.processing.lhcb.secondary_vertices.downstream.field import v0_field_types
from hltnode.processing.lhcb.secondary_vertices.downstream.find_v0s import find_v0s as find_downstream_v0s
from hltnode.processing.lhcb.secondary_vertices.find_pairs import find_pairs
from hltnode.processing.lhcb.secondary_vertices.fit_vertices import fit_vertices
from hltnode.processing.lhcb.secondary_vertices.pair_v0s import pair_v0s
from hltnode.processing.lhcb.secondary_vertices.select_tracks import select_tracks as vertex_tracks
from hltnode.processing.lhcb.tracks.downstream.collections import downstream_count, downstream_types
from hltnode.processing.lhcb.tracks.downstream.field import downstream_field_types
from hltnode.processing.lhcb.tracks.downstream.ghost_network import downstream_network_types
from hltnode.processing.lhcb.tracks.downstream.search_ut import search_ut as search_downstream
from hltnode.processing.lhcb.tracks.downstream.select_tracks import select_tracks as select_downstream
from hltnode.processing.lhcb.tracks.forward.prepare_candidates import prepare_candidates
from hltnode.processing.lhcb.tracks.forward.search_with_ut import search_with_ut
from hltnode.processing.lhcb.tracks.forward.search_without_ut import search_without_ut
from hltnode.processing.lhcb.tracks.forward.select_tracks import select_tracks as select_forward_tracks
from hltnode.processing.lhcb.tracks.kalman.collections import kalman_types
from hltnode.processing.lhcb.tracks.kalman.full_fit import full_fit
from hltnode.processing.lhcb.tracks.kalman.ghost_network import ghost_types
from hltnode.processing.lhcb.tracks.kalman.ghost_probability import ghost_probability
from hltnode.processing.lhcb.tracks.kalman.impact_parameter import impact_parameter as long_impact_parameter
from hltnode.processing.lhcb.tracks.kalman.lists import SMOOTHED_STATES
from hltnode.processing.lhcb.tracks.kalman.smooth_velo import smooth_velo
from hltnode.processing.lhcb.tracks.kalman.velo_fit import velo_fit
from hltnode.processing.lhcb.tracks.long.collections import long_count, long_types
from hltnode.processing.lhcb.tracks.long.parameters import parameter_types
from hltnode.processing.lhcb.tracks.looking_forward.collections import looking_forward_types
from hltnode.processing.lhcb.tracks.looking_forward.complete_tracks import complete_tracks
from hltnode.processing.lhcb.tracks.looking_forward.find_x_tracks import find_x_tracks
from hltnode.processing.lhcb.tracks.matching.append_matched import append_matched
from hltnode.processing.lhcb.tracks.matching.mark_used_hits import mark_used_hits
from hltnode.processing.lhcb.tracks.matching.match_seeds import match_seeds
from hltnode.processing.lhcb.tracks.matching.no_forward_tracks import no_forward_tracks
from hltnode.processing.lhcb.tracks.matching.seed_in_x import seed_in_x
from hltnode.processing.lhcb.tracks.matching.seed_in_y import seed_in_y
from hltnode.processing.lhcb.tracks.matching.seeding_tables import seeding_types
from hltnode.processing.lhcb.tracks.matching.select_seeding_hits import select_seeding_hits
from hltnode.processing.lhcb.ut.collections import ut_count, ut_track_count, ut_types
from hltnode.processing.lhcb.ut.decode_banks import decode_banks as ut_decode_banks
from hltnode.processing.lhcb.ut.estimate_input_size import estimate_input_size as ut_estimate_input_size
from hltnode.processing.lhcb.ut.hit_offsets import hit_offsets as ut_hit_offsets
from hltnode.processing.lhcb.ut.no_hits import no_hits as no_ut_hits
from hltnode.processing.lhcb.ut.search_tracks import search_tracks as ut_search_tracks
from hltnode.processing.lhcb.ut.select_tracks import select_tracks as ut_select_tracks
from hltnode.processing.lhcb.velo.collections import cluster_count, track_count, velo_geometry, velo_types
from hltnode.processing.lhcb.velo.decoding.cluster_limit import cluster_limit
from hltnode.processing.lhcb.velo.decoding.decode_retina_clusters import decode_retina_clusters
from hltnode.processing.lhcb.velo.decoding.estimate_input_size import estimate_input_size
from hltnode.processing.lhcb.velo.decoding.hit_offsets import hit_offsets as velo_hit_offsets
from hltnode.processing.lhcb.velo.decoding.masked_clustering import masked_clustering
from hltnode.processing.lhcb.velo.decoding.sparse_ccl import sparse_ccl
from hltnode.processing.lhcb.velo.tracking.consolidate_tracks import consolidate_tracks
from hltnode.processing.lhcb.velo.tracking.extend_downstream import extend_downstream
from hltnode.processing.lhcb.velo.tracking.filter_three_hit_tracks import filter_three_hit_tracks
from hltnode.processing.lhcb.velo.tracking.follow_tracks import follow_tracks
from hltnode.processing.lhcb.velo.tracking.kalman_filter import kalman_filter
from hltnode.processing.lhcb.velo.tracking.kill_clones import kill_clones
from hltnode.processing.lhcb.velo.tracking.large_clusters import large_clusters
from hltnode.processing.lhcb.velo.tracking.search_by_triplet import search_by_triplet
from hltnode.processing.lhcb.velo.tracking.sort_by_phi import sort_by_phi
from hltnode.processing.selection.event_rate import EventRate
from hltnode.processing.selection.lines.line import selection_types
from hltnode.processing.selection.trigger_chain import Constants, Sequence, TriggerChain
from hltnode.protocol.lhcb.subdetectors import SubDetector

# Algorithms over single events are grouped, so that the CPU takes an event through all of them at once. The global
# event cut comes first, so that an event that it rejects costs no further time.
VELO_SIZES = (estimate_input_size, cluster_limit, velo_hit_offsets)
UT_SIZES = (ut_estimate_input_size, ut_hit_offsets)
SCIFI_SIZES = (scifi_hit_offsets,)
MUON_SIZES = (muon_find_cells, muon_hit_offsets)
VELO = (
    decode_retina_clusters,
    masked_clustering,
    sort_by_phi,
    search_by_triplet,
    kill_clones,
    filter_three_hit_tracks,
    consolidate_tracks,
    kalman_filter,
)
PRIMARY_VERTICES = (extrapolate, peaks, multi_fit, cleanup, velo_impact_parameter)
UT = (ut_search_tracks, ut_select_tracks)
FORWARD = (prepare_candidates, search_with_ut, select_forward_tracks)
LOOKING_FORWARD = (
    prepare_candidates,
    find_x_tracks,
    complete_tracks,
    # The thesis has no competition for hits.
    select_forward_tracks.with_constants({"max_shared_fraction": 1.0}),
)
MATCHING = (select_seeding_hits, seed_in_x, seed_in_y, match_seeds, append_matched)
FORWARD_WITHOUT_UT = (
    prepare_candidates,
    search_without_ut.with_constants({"min_p": 3000.0, "max_quality": 20.0}),
    select_forward_tracks,
)
MATCHING_WITHOUT_UT = tuple(
    algorithm.with_constants({"max_score": 4.0}) if algorithm is match_seeds else algorithm for algorithm in MATCHING
)
DOWNSTREAM = (search_downstream, select_downstream, find_downstream_v0s)
LUMINOSITY = (decode_plume, fill_counters)
JETS = (find_jets,)
LARGE_CLUSTERS = (large_clusters,)
ECAL = (
    *(ecal_decode_cells, ecal_find_clusters, find_electrons, measure_showers, identify_electrons),
    *(pair_photons, pair_electrons),
)
MUONS = (cross_strips, is_muon, correlated_chi2)
MUON_NETWORK = (measure_muons, identify_muons)
MUON_STUBS = (find_stubs,)
SECONDARY_VERTICES = (vertex_tracks, find_pairs, fit_vertices, pair_v0s)

HLT1_SEQUENCE = AlgorithmSequence(
    (
        *(fragment_offsets, missing_detectors.with_constants({"ut": 0, "scifi": 0, "muon": 0})),
        *(*VELO_SIZES, decode_odin, *VELO, *PRIMARY_VERTICES),
    )
)
"""The VELO chain of HLT1 with its default constants."""
_SIMD = {
    cluster_limit: cluster_limit.with_constants({"max_clusters": 16000}),
    search_by_triplet: follow_tracks,
    filter_three_hit_tracks: filter_three_hit_tracks.with_constants({"max_chi2": 17.0}),
}
_WITH_SIMD = tuple(_SIMD.get(algorithm, algorithm) for algorithm in HLT1_SEQUENCE)
_TRACKS_END = _WITH_SIMD.index(consolidate_tracks) + 1
VELO_SIMD_SEQUENCE = AlgorithmSequence((*_WITH_SIMD[:_TRACKS_END], extend_downstream, *_WITH_SIMD[_TRACKS_END:]))
"""The VELO chain with the search for vector registers, whose tracks are then extended downstream."""
VELO_SPARSE_CCL_SEQUENCE = AlgorithmSequence(
    tuple(sparse_ccl if algorithm is masked_clustering else algorithm for algorithm in HLT1_SEQUENCE)
)
"""The VELO chain with clusters of super-pixels of any size and shape."""
VELO_HALVES_SEQUENCE = AlgorithmSequence(
    (
        *(
            algorithm.with_constants({"plane_kind": 1}) if algorithm is follow_tracks else algorithm
            for algorithm in _WITH_SIMD
        ),
        *(split_half_tracks, find_half_vertices, pair_half_vertices),
    )
)
"""The VELO chain whose tracks stay on one half of the VELO, and the primary vertices of each half."""


def _whole(*tracking: Algorithm, with_ut: bool = True, more: tuple[Algorithm, ...] = ()) -> AlgorithmSequence:
    """The sequence with the given long tracking, which makes long tracks from VELO tracks, UT and SciFi hits; `more`
    comes last."""
    ut_sizes, ut_hits = (UT_SIZES, (ut_decode_banks,)) if with_ut else ((no_ut_hits,), ())
    check = missing_detectors if with_ut else missing_detectors.with_constants({"ut": 0})
    return AlgorithmSequence(
        (
            *(fragment_offsets, check, global_event_cut),
            *(*VELO_SIZES, *ut_sizes, *SCIFI_SIZES, *MUON_SIZES, decode_odin),
            *(*VELO, *PRIMARY_VERTICES, *ut_hits, decode_clusters, *tracking),
            *(full_fit, velo_fit, ghost_probability, long_impact_parameter, *MUONS, *SECONDARY_VERTICES, *more),
        )
    )


_VELO_COUNTS = {"velo_clusters": cluster_count, "velo_tracks": track_count, "pvs": pv_count}
_LONG_COUNTS = {
    **_VELO_COUNTS,
    **{"scifi_hits": scifi_count, "muon_hits": muon_count},
    **{"long_tracks": long_count, "secondary_vertices": vertex_count},
}
_ECAL_COUNTS = {
    **{"ecal_cells": ecal_cell_count, "ecal_energy": ecal_energy_count, "ecal_clusters": ecal_cluster_count},
    **{"electrons": electron_count, "photon_pairs": photon_pair_count, "dielectrons": dielectron_count},
}
"""`ecal_energy` counts MeV."""
_HALVES_COUNTS = {"half_vertices": half_vertex_count, "half_pairs": half_pair_count}
_VELO_SKIPS = ((estimate_input_size.name,),)
_SKIPS_WITHOUT_UT = (*_VELO_SKIPS, (scifi_hit_offsets.name, muon_find_cells.name))
_SKIPS = (*_VELO_SKIPS, (ut_estimate_input_size.name, *_SKIPS_WITHOUT_UT[1]))
"""Prefilters can skip an event before the VELO, and before UT, SciFi, muon chambers and calorimeter."""
_VELO_DETECTORS = frozenset({SubDetector.ODIN, SubDetector.VELO_A, SubDetector.VELO_C})
_ALL_BUT_UT = _VELO_DETECTORS | {
    *(SubDetector.SCIFI_A, SubDetector.SCIFI_C, SubDetector.MUON_A, SubDetector.MUON_C),
}
_ALL_DETECTORS = _ALL_BUT_UT | {SubDetector.UT_A, SubDetector.UT_C}


def _long(*tracking: Algorithm) -> Sequence:
    counts = _LONG_COUNTS | {"ut_hits": ut_count}
    counts |= {"ut_tracks": ut_track_count} if ut_select_tracks in tracking else {}
    return Sequence(algorithms=_whole(*tracking), subdetectors=_ALL_DETECTORS, counts=counts, skip_points=_SKIPS)


def _velo(algorithms: AlgorithmSequence, more: Mapping[str, Column] = MappingProxyType({})) -> Sequence:
    """A sequence of the VELO alone; more: further counts."""
    counts = {**_VELO_COUNTS, **more}
    return Sequence(algorithms=algorithms, subdetectors=_VELO_DETECTORS, counts=counts, skip_points=_VELO_SKIPS)


def _with_ecal(*tracking: Algorithm) -> Sequence:
    """The sequence of a long tracking with the muon network, stubs of the muon stations, the electromagnetic
    calorimeter, the counters for luminosity, downstream tracks with their vertices, jets, and large clusters of VELO
    tracks."""
    without = _long(*tracking)
    return Sequence(
        algorithms=_whole(
            *tracking, more=(*ECAL, *MUON_NETWORK, *MUON_STUBS, *LUMINOSITY, *DOWNSTREAM, *JETS, *LARGE_CLUSTERS)
        ),
        subdetectors=without.subdetectors | {SubDetector.ECAL, SubDetector.PLUME},
        counts={
            **without.counts,
            **_ECAL_COUNTS,
            "muon_stubs": stub_count,
            "downstream_tracks": downstream_count,
            "downstream_v0s": downstream_v0_count,
            "jets": jet_count,
        },
        summary=LUMI_SUMMARY,
        skip_points=(*without.skip_points[:-1], (*without.skip_points[-1], ecal_decode_cells.name)),
    )


def _smoothed(*tracking: Algorithm) -> Sequence:
    """The sequence of a long tracking, and the smoothed states of its tracks at their VELO hits."""
    without = _long(*tracking)
    return replace(without, algorithms=_whole(*tracking, more=(smooth_velo,)), lists=(SMOOTHED_STATES,))


FORWARD_THEN_MATCHING = (*UT, *FORWARD, mark_used_hits, *MATCHING)

SEQUENCES = {
    "velo": _velo(HLT1_SEQUENCE),
    "velo_simd": _velo(VELO_SIMD_SEQUENCE),
    "velo_sparse_ccl": _velo(VELO_SPARSE_CCL_SEQUENCE),
    "velo_halves": _velo(VELO_HALVES_SEQUENCE, _HALVES_COUNTS),
    "forward": _long(*UT, *FORWARD),
    "looking_forward": _long(*UT, *LOOKING_FORWARD),
    "matching": _long(no_forward_tracks, *MATCHING),
    "forward_then_matching": _long(*FORWARD_THEN_MATCHING),
    "hlt1_2026": _with_ecal(*FORWARD_THEN_MATCHING),
    "smoothed_tracks": _smoothed(*FORWARD_THEN_MATCHING),
    "no_ut": Sequence(
        algorithms=_whole(*FORWARD_WITHOUT_UT, mark_used_hits, *MATCHING_WITHOUT_UT, with_ut=False),
        subdetectors=_ALL_BUT_UT,
        counts=_LONG_COUNTS,
        skip_points=_SKIPS_WITHOUT_UT,
    ),
}
"""The sequences that a trigger configuration may choose from."""


def geometry_constants(velo: VeloGeometry) -> Constants:
    """The constants of the VELO chain from the geometry."""
    return {velo_geometry.name: np.frombuffer(velo.to_bytes(), dtype=np.uint8)}


CROSSING_RATE = 30e6
"""Highest rate of crossings of two filled bunches at LHCb, in Hz."""

CHAIN = TriggerChain.offering(
    SEQUENCES,
    "forward_then_matching",
    name="lhcb",
    former_names=("hlt1",),
    kernels=KernelSources("lhcb/generated/chain_kernels.h", (PROCESSING,), "hltnode.processing.lhcb._chain_kernels"),
    source=Path(__file__),
    readout=LHCB_READOUT,
    types=(
        *(
            flag_types,
            odin_types,
            raw_data_types,
            velo_types,
            pv_types,
            half_types,
            ut_types,
            scifi_types,
            parameter_types,
            seeding_types,
            long_types,
            looking_forward_types,
        ),
        *(
            kalman_types,
            ghost_types,
            downstream_types,
            downstream_field_types,
            downstream_network_types,
            muon_types,
            muon_network_types,
            ecal_types,
            electron_network_types,
            lumi_types,
            vertex_types,
            downstream_v0_types,
            v0_field_types,
            jet_types,
            selection_types,
        ),
    ),
    event_words=EVENT_WORDS,
    menu=HLT1_MENU,
    geometry=DETECTOR_CONSTANTS,
    conditions=CONDITIONS,
    routing=ROUTING_RULES,
    histograms=HLT1_HISTOGRAMS,
    channels=counted_channels,
    reported=REPORTED,
    inputs=INPUTS,
    usual_fields=USUAL_FIELDS,
    event_rate=EventRate(CROSSING_RATE, "bunch crossing"),
    display="hltnode.processing.lhcb.offline.display.picture",
)
