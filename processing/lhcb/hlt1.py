"""HLT1, the chain of LHCb: its sequences of algorithms, and what they read and deliver."""

from pathlib import Path

import numpy as np

from hltnode.processing.algorithms.fragment_offsets import fragment_offsets
from hltnode.processing.framework.collections import PROCESSING
from hltnode.processing.framework.declaration import AlgorithmSequence
from hltnode.processing.framework.kernel_sources import KernelSources
from hltnode.processing.lhcb.detector_constants import DETECTOR_CONSTANTS
from hltnode.processing.lhcb.geometry.velo import VeloGeometry
from hltnode.processing.lhcb.lines.event_lines import event_lines
from hltnode.processing.lhcb.lines.kinds import line_types
from hltnode.processing.lhcb.lines.menu import HLT1_MENU
from hltnode.processing.lhcb.primary_vertices.cleanup import cleanup
from hltnode.processing.lhcb.primary_vertices.collections import pv_count, pv_types
from hltnode.processing.lhcb.primary_vertices.extrapolate import extrapolate
from hltnode.processing.lhcb.primary_vertices.impact_parameter import impact_parameter
from hltnode.processing.lhcb.primary_vertices.multi_fit import multi_fit
from hltnode.processing.lhcb.primary_vertices.peaks import peaks
from hltnode.processing.lhcb.raw_data.global_event_cut import global_event_cut as scifi_ut_event_cut
from hltnode.processing.lhcb.raw_data.odin_decode import odin_decode, raw_data_types
from hltnode.processing.lhcb.readout import LHCB_READOUT
from hltnode.processing.lhcb.scifi.collections import scifi_count, scifi_types
from hltnode.processing.lhcb.scifi.count_hits import count_hits as scifi_count_hits
from hltnode.processing.lhcb.scifi.decode_clusters import decode_clusters as scifi_decode_clusters
from hltnode.processing.lhcb.scifi.hit_offsets import hit_offsets as scifi_hit_offsets
from hltnode.processing.lhcb.ut.collections import ut_count, ut_track_count, ut_types
from hltnode.processing.lhcb.ut.decode_banks import decode_banks as ut_decode_banks
from hltnode.processing.lhcb.ut.estimate_input_size import estimate_input_size as ut_estimate_input_size
from hltnode.processing.lhcb.ut.hit_offsets import hit_offsets as ut_hit_offsets
from hltnode.processing.lhcb.ut.search_tracks import search_tracks as ut_search_tracks
from hltnode.processing.lhcb.ut.select_tracks import select_tracks as ut_select_tracks
from hltnode.processing.lhcb.velo.cluster_offsets import cluster_offsets
from hltnode.processing.lhcb.velo.collections import cluster_count, track_count, velo_geometry, velo_types
from hltnode.processing.lhcb.velo.consolidate_tracks import consolidate_tracks
from hltnode.processing.lhcb.velo.decode_retina_clusters import decode_retina_clusters
from hltnode.processing.lhcb.velo.estimate_input_size import estimate_input_size
from hltnode.processing.lhcb.velo.filter_three_hit_tracks import filter_three_hit_tracks
from hltnode.processing.lhcb.velo.global_event_cut import global_event_cut
from hltnode.processing.lhcb.velo.kalman_filter import kalman_filter
from hltnode.processing.lhcb.velo.kill_clones import kill_clones
from hltnode.processing.lhcb.velo.masked_clustering import masked_clustering
from hltnode.processing.lhcb.velo.search_by_triplet import search_by_triplet
from hltnode.processing.lhcb.velo.sort_by_phi import sort_by_phi
from hltnode.processing.selection.line import selection_types
from hltnode.processing.selection.trigger_chain import Constants, Sequence, TriggerChain
from hltnode.protocol.raw_data.source_id import SubDetector

# Algorithms over single events stand together, so that the CPU takes an event through all of them at once.
VELO_SIZES = (estimate_input_size, global_event_cut, cluster_offsets)
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
PRIMARY_VERTICES = (extrapolate, peaks, multi_fit, cleanup, impact_parameter)

# The global event cut comes first, so that an event that it removes costs nothing further.
SCIFI_SIZES = (scifi_count_hits, scifi_hit_offsets)
UT_SIZES = (ut_estimate_input_size, ut_hit_offsets)
UT = (ut_decode_banks, ut_search_tracks, ut_select_tracks)

HLT1_SEQUENCE = AlgorithmSequence((fragment_offsets, *VELO_SIZES, odin_decode, *VELO, *PRIMARY_VERTICES, event_lines))
"""The VELO chain of HLT1 with its default constants."""

VELO_UT = AlgorithmSequence(
    (
        *(fragment_offsets, scifi_ut_event_cut, *VELO_SIZES, *UT_SIZES, *SCIFI_SIZES, odin_decode),
        *(*VELO, *PRIMARY_VERTICES, *UT, scifi_decode_clusters, event_lines),
    )
)
_VELO_COUNTS = {"velo_clusters": cluster_count, "velo_tracks": track_count, "pvs": pv_count}
_UT_COUNTS = {"ut_hits": ut_count, "ut_tracks": ut_track_count}
_TRACKERS = frozenset(
    {
        *(SubDetector.ODIN, SubDetector.VELO_A, SubDetector.VELO_C, SubDetector.UT_A, SubDetector.UT_C),
        *(SubDetector.SCIFI_A, SubDetector.SCIFI_C),
    }
)

SEQUENCES = {
    "velo": Sequence(
        algorithms=HLT1_SEQUENCE,
        subdetectors=frozenset({SubDetector.ODIN, SubDetector.VELO_A, SubDetector.VELO_C}),
        counts=_VELO_COUNTS,
    ),
    "velo_ut": Sequence(
        algorithms=VELO_UT, subdetectors=_TRACKERS, counts={**_VELO_COUNTS, **_UT_COUNTS, "scifi_hits": scifi_count}
    ),
}
"""What a trigger configuration may choose from."""


def geometry_constants(velo: VeloGeometry) -> Constants:
    """The constants of the VELO chain that come from the geometry."""
    return {velo_geometry.name: np.frombuffer(velo.to_bytes(), dtype=np.uint8)}


HLT1 = TriggerChain.offering(
    SEQUENCES,
    name="hlt1",
    kernels=KernelSources("lhcb/generated/hlt1_kernels.h", (PROCESSING,), "hltnode.processing.lhcb._hlt1_kernels"),
    source=Path(__file__),
    readout=LHCB_READOUT,
    types=(raw_data_types, velo_types, ut_types, scifi_types, pv_types, selection_types, line_types),
    menu=HLT1_MENU,
    geometry=DETECTOR_CONSTANTS,
)
