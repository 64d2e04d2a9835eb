"""The HLT1 sequence: the algorithms in the order in which they run, and the engine that runs them."""

from dataclasses import replace

import numpy as np

from hltnode.processing.framework.backends.interface import Backend
from hltnode.processing.framework.batch import BatchLimits
from hltnode.processing.framework.declaration import AlgorithmSequence
from hltnode.processing.framework.engine import Engine
from hltnode.processing.lhcb.geometry.velo import VeloGeometry
from hltnode.processing.lhcb.lines.event_lines import event_lines, line_table
from hltnode.processing.lhcb.primary_vertices.cleanup import pv_beamline_cleanup
from hltnode.processing.lhcb.primary_vertices.extrapolate import pv_beamline_extrapolate
from hltnode.processing.lhcb.primary_vertices.multi_fit import pv_beamline_multi_fit
from hltnode.processing.lhcb.primary_vertices.peaks import pv_beamline_peaks
from hltnode.processing.lhcb.raw_data.fragment_offsets import fragment_offsets
from hltnode.processing.lhcb.raw_data.odin_decode import odin_decode
from hltnode.processing.lhcb.velo.cluster_offsets import velo_cluster_offsets
from hltnode.processing.lhcb.velo.collections import velo_geometry
from hltnode.processing.lhcb.velo.consolidate_tracks import velo_consolidate_tracks
from hltnode.processing.lhcb.velo.decode_retina_clusters import velo_decode_retina_clusters
from hltnode.processing.lhcb.velo.estimate_input_size import velo_estimate_input_size
from hltnode.processing.lhcb.velo.filter_three_hit_tracks import velo_filter_three_hit_tracks
from hltnode.processing.lhcb.velo.impact_parameter import velo_impact_parameter
from hltnode.processing.lhcb.velo.kalman_filter import velo_kalman_filter
from hltnode.processing.lhcb.velo.kill_clones import velo_kill_clones
from hltnode.processing.lhcb.velo.masked_clustering import velo_masked_clustering
from hltnode.processing.lhcb.velo.search_by_triplet import velo_search_by_triplet
from hltnode.processing.lhcb.velo.sort_by_phi import velo_sort_by_phi
from hltnode.processing.selection.trigger_config import TriggerConfig

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

    The number of lines in `limits` becomes that of the configuration.

    Raises TriggerConfigError for constants that the sequence does not have, BackendError where memory is short.
    """
    return Engine(
        backend,
        trigger.configure(HLT1_SEQUENCE),
        {
            velo_geometry.name: np.frombuffer(geometry.to_bytes(), dtype=np.uint8),
            line_table.name: trigger.line_table().view(np.uint8),
        },
        replace(limits, lines=len(trigger.lines)),
        lines=trigger.line_names,
        tck=trigger.tck(HLT1_SEQUENCE),
    )
