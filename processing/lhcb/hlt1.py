"""The HLT1 sequence: the algorithms in the order in which they run, and the engine that runs them."""

from dataclasses import replace
from pathlib import Path

import numpy as np

from hltnode.processing.algorithms.fragment_offsets import fragment_offsets
from hltnode.processing.framework.backends.interface import Backend
from hltnode.processing.framework.chain import Chain
from hltnode.processing.framework.collections import PROCESSING
from hltnode.processing.framework.declaration import AlgorithmSequence
from hltnode.processing.framework.engine import Engine
from hltnode.processing.framework.kernel_sources import KernelSources
from hltnode.processing.framework.limits import BatchLimits
from hltnode.processing.framework.memory_plan import Retain
from hltnode.processing.lhcb.geometry.velo import VeloGeometry
from hltnode.processing.lhcb.lines.event_lines import accepted, event_lines, line_table, lines
from hltnode.processing.lhcb.lines.kinds import line_types
from hltnode.processing.lhcb.primary_vertices.cleanup import cleanup
from hltnode.processing.lhcb.primary_vertices.collections import pv_count, pv_types
from hltnode.processing.lhcb.primary_vertices.extrapolate import extrapolate
from hltnode.processing.lhcb.primary_vertices.multi_fit import multi_fit
from hltnode.processing.lhcb.primary_vertices.peaks import peaks
from hltnode.processing.lhcb.raw_data.odin_decode import odin_decode, raw_data_types
from hltnode.processing.lhcb.velo.cluster_offsets import cluster_offsets
from hltnode.processing.lhcb.velo.collections import cluster_count, track_count, velo_geometry, velo_types
from hltnode.processing.lhcb.velo.consolidate_tracks import consolidate_tracks
from hltnode.processing.lhcb.velo.decode_retina_clusters import decode_retina_clusters
from hltnode.processing.lhcb.velo.estimate_input_size import estimate_input_size
from hltnode.processing.lhcb.velo.filter_three_hit_tracks import filter_three_hit_tracks
from hltnode.processing.lhcb.velo.impact_parameter import impact_parameter
from hltnode.processing.lhcb.velo.kalman_filter import kalman_filter
from hltnode.processing.lhcb.velo.kill_clones import kill_clones
from hltnode.processing.lhcb.velo.masked_clustering import masked_clustering
from hltnode.processing.lhcb.velo.search_by_triplet import search_by_triplet
from hltnode.processing.lhcb.velo.sort_by_phi import sort_by_phi
from hltnode.processing.selection.line import selection_types
from hltnode.processing.selection.trigger_config import TriggerConfig

HLT1_SEQUENCE = AlgorithmSequence(
    (
        fragment_offsets,
        estimate_input_size,
        cluster_offsets,
        odin_decode,
        decode_retina_clusters,
        masked_clustering,
        sort_by_phi,
        search_by_triplet,
        kill_clones,
        filter_three_hit_tracks,
        consolidate_tracks,
        kalman_filter,
        extrapolate,
        peaks,
        multi_fit,
        cleanup,
        impact_parameter,
        event_lines,
    )
)
"""The VELO chain of HLT1 with its default constants."""

HLT1 = Chain(
    name="hlt1",
    sequence=HLT1_SEQUENCE,
    kernels=KernelSources("lhcb/generated/hlt1_kernels.h", (PROCESSING,), "hltnode.processing.lhcb._hlt1_kernels"),
    source=Path(__file__),
    accepted=accepted,
    lines=lines,
    counts={"velo_clusters": cluster_count, "velo_tracks": track_count, "pvs": pv_count},
    types=(raw_data_types, velo_types, pv_types, selection_types, line_types),
)


def create_engine(
    backend: Backend, geometry: VeloGeometry, trigger: TriggerConfig, limits: BatchLimits, *, retain: Retain = ()
) -> Engine:
    """The engine of a node: HLT1 with the constants and lines of a trigger configuration.

    retain: columns that Workspace.fetch shall find.

    Raises TriggerConfigError for constants that the sequence does not have, BackendError where memory is short.
    """
    return Engine(
        backend,
        replace(HLT1, sequence=trigger.configure(HLT1_SEQUENCE)),
        {
            velo_geometry.name: np.frombuffer(geometry.to_bytes(), dtype=np.uint8),
            line_table.name: trigger.line_table().view(np.uint8),
        },
        limits,
        line_names=trigger.line_names,
        tck=trigger.tck(HLT1_SEQUENCE),
        retain=retain,
    )
