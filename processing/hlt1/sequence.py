"""The HLT1 sequence: the algorithms in the order in which they run, and the engine that runs them."""

import numpy as np

from hltnode.processing.backend.base import Backend
from hltnode.processing.batch import BatchLimits
from hltnode.processing.engine import Engine
from hltnode.processing.geometry.velo import VeloGeometry
from hltnode.processing.hlt1.declaration import AlgorithmSequence
from hltnode.processing.hlt1.event_lines import event_lines, line_table
from hltnode.processing.hlt1.fragment_offsets import fragment_offsets
from hltnode.processing.hlt1.odin_decode import odin_decode
from hltnode.processing.hlt1.pv_beamline_cleanup import pv_beamline_cleanup
from hltnode.processing.hlt1.pv_beamline_extrapolate import pv_beamline_extrapolate
from hltnode.processing.hlt1.pv_beamline_multi_fit import pv_beamline_multi_fit
from hltnode.processing.hlt1.pv_beamline_peaks import pv_beamline_peaks
from hltnode.processing.hlt1.velo_buffers import velo_geometry
from hltnode.processing.hlt1.velo_cluster_offsets import velo_cluster_offsets
from hltnode.processing.hlt1.velo_consolidate_tracks import velo_consolidate_tracks
from hltnode.processing.hlt1.velo_decode_retina_clusters import velo_decode_retina_clusters
from hltnode.processing.hlt1.velo_estimate_input_size import velo_estimate_input_size
from hltnode.processing.hlt1.velo_filter_three_hit_tracks import velo_filter_three_hit_tracks
from hltnode.processing.hlt1.velo_impact_parameter import velo_impact_parameter
from hltnode.processing.hlt1.velo_kalman_filter import velo_kalman_filter
from hltnode.processing.hlt1.velo_kill_clones import velo_kill_clones
from hltnode.processing.hlt1.velo_masked_clustering import velo_masked_clustering
from hltnode.processing.hlt1.velo_search_by_triplet import velo_search_by_triplet
from hltnode.processing.hlt1.velo_sort_by_phi import velo_sort_by_phi
from hltnode.processing.trigger import TriggerConfig

HLT1_SEQUENCE = AlgorithmSequence(
    (
        fragment_offsets,
        velo_estimate_input_size,
        velo_cluster_offsets,
        odin_decode,
        velo_decode_retina_clusters,
        velo_masked_clustering,
        velo_sort_by_phi,
        velo_search_by_triplet,
        velo_kill_clones,
        velo_filter_three_hit_tracks,
        velo_consolidate_tracks,
        velo_kalman_filter,
        pv_beamline_extrapolate,
        pv_beamline_peaks,
        pv_beamline_multi_fit,
        pv_beamline_cleanup,
        velo_impact_parameter,
        event_lines,
    )
)
"""The VELO chain of HLT1 with its default constants."""


def create_engine(backend: Backend, geometry: VeloGeometry, trigger: TriggerConfig, limits: BatchLimits) -> Engine:
    """The engine of a node: HLT1 with the constants and lines of a trigger configuration.

    Raises TriggerConfigError for constants that the sequence does not have, BackendError where memory is short.
    """
    return Engine(
        backend,
        trigger.configure(HLT1_SEQUENCE),
        {
            velo_geometry.name: np.frombuffer(geometry.to_bytes(), dtype=np.uint8),
            line_table.name: trigger.line_table().view(np.uint8),
        },
        limits,
        lines=trigger.line_names,
        tck=trigger.tck(HLT1_SEQUENCE),
    )
