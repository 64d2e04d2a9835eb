"""The chain `alice_tpc`: tracks of the TPC of ALICE."""

from pathlib import Path

from hltnode.processing.algorithms.fragment_offsets import fragment_offsets
from hltnode.processing.alice.geometry.tpc_geometry import geometry_bytes
from hltnode.processing.alice.lines.histograms import TPC_HISTOGRAMS
from hltnode.processing.alice.lines.inputs import EVENT_WORDS, INPUTS, USUAL_FIELDS
from hltnode.processing.alice.lines.menu import TPC_MENU
from hltnode.processing.alice.readout import TPC_READOUT
from hltnode.processing.alice.tpc.candidates.collections import jet_count, tpc_candidate_types, v0_count
from hltnode.processing.alice.tpc.candidates.count_v0s import count_v0s
from hltnode.processing.alice.tpc.candidates.describe_v0_tracks import describe_v0_tracks
from hltnode.processing.alice.tpc.candidates.find_jets import find_jets
from hltnode.processing.alice.tpc.candidates.find_v0s import find_v0s
from hltnode.processing.alice.tpc.candidates.sort_v0_tracks import sort_v0_tracks
from hltnode.processing.alice.tpc.clusters.find_slices import find_slices
from hltnode.processing.alice.tpc.clusters.place_clusters import place_clusters
from hltnode.processing.alice.tpc.clusters.sort_clusters import sort_clusters
from hltnode.processing.alice.tpc.collections import (
    all_tracklet_count,
    cluster_count,
    geometry,
    tpc_types,
    track_count,
)
from hltnode.processing.alice.tpc.flags import tpc_flag_types
from hltnode.processing.alice.tpc.lists import JETS, MERGED_SEGMENTS, MERGED_TRACKS, TRACK_CLUSTERS, TRACKS, V0S
from hltnode.processing.alice.tpc.merging.collections import merged_track_count, tpc_merging_types
from hltnode.processing.alice.tpc.merging.fit.fit_merged_tracks import fit_merged_tracks
from hltnode.processing.alice.tpc.merging.links.cut_chains import cut_chains
from hltnode.processing.alice.tpc.merging.links.find_clones import find_clones
from hltnode.processing.alice.tpc.merging.links.find_turns import find_turns
from hltnode.processing.alice.tpc.merging.links.insert_segments import insert_segments
from hltnode.processing.alice.tpc.merging.links.join_segments import join_segments
from hltnode.processing.alice.tpc.merging.links.link_free_ends import link_free_ends
from hltnode.processing.alice.tpc.merging.links.link_segments import link_segments
from hltnode.processing.alice.tpc.merging.links.sort_free_ends import sort_free_ends
from hltnode.processing.alice.tpc.merging.segments.describe_segments import describe_segments
from hltnode.processing.alice.tpc.merging.segments.keep_places import keep_places
from hltnode.processing.alice.tpc.merging.segments.sort_segments import sort_segments
from hltnode.processing.alice.tpc.schedules.construct_canonical import construct_canonical
from hltnode.processing.alice.tpc.schedules.construct_from_pool import construct_from_pool
from hltnode.processing.alice.tpc.schedules.row_blocks import ROW_BLOCK_ALGORITHMS
from hltnode.processing.alice.tpc.seeds.clean_links import clean_links
from hltnode.processing.alice.tpc.seeds.find_neighbours import find_neighbours
from hltnode.processing.alice.tpc.seeds.find_start_hits import find_start_hits
from hltnode.processing.alice.tpc.tracks.collect_tracks import collect_tracks
from hltnode.processing.alice.tpc.tracks.construct_tracklets import construct_tracklets
from hltnode.processing.alice.tpc.tracks.select_tracks import select_tracks
from hltnode.processing.framework.collections import PROCESSING
from hltnode.processing.framework.declaration import Algorithm, AlgorithmSequence
from hltnode.processing.framework.kernel_sources import KernelSources
from hltnode.processing.framework.limits import BatchLimits
from hltnode.processing.selection.event_rate import EventRate
from hltnode.processing.selection.lines.line import selection_types
from hltnode.processing.selection.trigger_chain import Sequence, TriggerChain
from hltnode.protocol.alice.tpc_banks import TPC_SUBDETECTOR

COLLISION_RATE = 500e3
"""Usual rate of pp collisions in ALICE, in Hz; of Pb-Pb collisions 50 kHz (ALICE Collaboration, "ALICE upgrades during
the LHC Long Shutdown 2", JINST 19 (2024) P05062, section 1)."""
LARGEST_EVENT = 48 << 20
"""Bytes of an event of six million clusters."""


def _largest_event(_: BatchLimits) -> int:
    return LARGEST_EVENT


def _with_constructor(*constructor: Algorithm) -> Sequence:
    """Tracks of slices, and merged tracks of the whole TPC. Every constructor gives the same result."""
    return Sequence(
        algorithms=AlgorithmSequence(
            (
                *(fragment_offsets, find_slices, place_clusters, sort_clusters),
                *(find_neighbours, clean_links, find_start_hits),
                *(*constructor, select_tracks, keep_places, collect_tracks),
                *(describe_segments, sort_segments, find_clones),
                *(link_segments, sort_free_ends, link_free_ends, insert_segments, cut_chains),
                *(find_turns, join_segments, fit_merged_tracks),
                *(find_jets, describe_v0_tracks, sort_v0_tracks, count_v0s, find_v0s),
            )
        ),
        subdetectors=frozenset({TPC_SUBDETECTOR}),
        counts={
            "clusters": cluster_count,
            "tracklets": all_tracklet_count,
            "tracks": track_count,
            "merged_tracks": merged_track_count,
            "jets": jet_count,
            "v0s": v0_count,
        },
        size="clusters",
        lists=(TRACKS, TRACK_CLUSTERS, MERGED_TRACKS, MERGED_SEGMENTS, JETS, V0S),
    )


SEQUENCES = {
    "slice_tracks": _with_constructor(construct_tracklets),
    "slice_tracks_canonical": _with_constructor(construct_canonical),
    "slice_tracks_pool": _with_constructor(construct_from_pool),
    "slice_tracks_row_blocks": _with_constructor(*ROW_BLOCK_ALGORITHMS),
}

CHAIN = TriggerChain.offering(
    SEQUENCES,
    "slice_tracks",
    name="alice_tpc",
    kernels=KernelSources("alice/generated/chain_kernels.h", (PROCESSING,), "hltnode.processing.alice._chain_kernels"),
    source=Path(__file__),
    readout=TPC_READOUT,
    types=(tpc_flag_types, tpc_types, tpc_merging_types, tpc_candidate_types, selection_types),
    event_words=EVENT_WORDS,
    menu=TPC_MENU,
    geometry={geometry.name: geometry_bytes},
    histograms=TPC_HISTOGRAMS,
    inputs=INPUTS,
    usual_fields=USUAL_FIELDS,
    event_rate=EventRate(COLLISION_RATE, "collision"),
    largest_event=_largest_event,
    display="hltnode.processing.alice.offline.display.picture",
)
