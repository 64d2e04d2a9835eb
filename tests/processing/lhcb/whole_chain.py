"""A whole sequence of HLT1 on the CPU back end, as a reference for other ways to run its kernels."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from pathlib import Path

import numpy as np
from numpy.typing import NDArray

from hltnode.processing.framework.collections import Column, Role
from hltnode.processing.framework.declaration import AlgorithmSequence
from hltnode.processing.framework.offline_runner import EncodedMep
from hltnode.processing.lhcb.chain import CHAIN, HLT1_SEQUENCE, geometry_constants
from hltnode.processing.lhcb.geometry.velo import VeloGeometry
from hltnode.processing.lhcb.scifi.collections import N_ZONES
from hltnode.processing.lhcb.tracks.long.collections import BIN_STRIDE, N_BINS
from hltnode.processing.lhcb.velo.collections import unsorted
from tests.processing.chains.reference import Reference, counts_of_columns, run_reference
from tests.processing.chains.reference import used_part as used_part_by

COUNTS = {
    **dict.fromkeys(("velo_beamline", "velo_end", "ut_candidates"), "velo_tracks"),
    **{"forward_candidates": "ut_tracks"},
}
"""Collections without a column of counts, and the collection with the same number of objects."""
UNORDERED = (unsorted,)
"""Collections whose objects may be in any order."""


def counts(collection: str, made: Mapping[str, bytes], n_events: int) -> NDArray[np.uint32] | None:
    """Number of objects of a collection in each event (reference.Counts)."""
    if collection == "seeding_hits" and "seeding_hits.bins" in made:
        # The last zone gives the end of the hits of the event.
        bins = np.frombuffer(made["seeding_hits.bins"], np.uint16).reshape(-1, N_ZONES, BIN_STRIDE)
        return bins[:n_events, -1, N_BINS].astype(np.uint32)
    column = COUNTS.get(collection)
    return counts_of_columns(column or collection, made, n_events)


def used_part(column: Column, content: bytes, made: Mapping[str, bytes], n_events: int) -> bytes:
    """The part of a column that holds objects of its collection, if their number is known."""
    return used_part_by(column, content, made, n_events, counts)


def reference_of(mep: EncodedMep, geometry: VeloGeometry | Path | None, sequence: str = "velo") -> Reference:
    """Run one MEP on the CPU back end by a sequence, with default constants and lines.

    geometry: that of the VELO, sufficient for the sequence `velo`; a folder of files; or None, the built-in detector.
    """
    chain = CHAIN.with_sequence(sequence)
    constants = geometry_constants(geometry) if isinstance(geometry, VeloGeometry) else chain.load_geometry(geometry)
    names = compared() if sequence == "velo" else results(chain.sequence)
    return run_reference(CHAIN, mep, constants, sequence, names, counts)


def results(sequence: AlgorithmSequence) -> Sequence[str]:
    """All output columns of algorithms, without scratch memory."""
    scratch = {column for algorithm in sequence for column in algorithm.scratch_columns}
    made = {column for algorithm in sequence for column in (*algorithm.writes, *algorithm.updates)}
    return [c.name for c in sequence.columns if c in made - scratch and c.collection not in UNORDERED]


def compared() -> Sequence[str]:
    """Columns of the VELO chain that a physicist or the daemon may read."""
    outputs = [column.name for column in HLT1_SEQUENCE.columns if column.role & Role.OUTPUT]
    hits_and_tracks = [
        "velo_hits.x",
        "velo_hits.id",
        "velo_hits.module_pair_offset",
        "velo_tracks.hits",
        "velo_tracks.hit_count",
    ]
    return [
        *outputs,
        *hits_and_tracks,
        "pvs.vertex",
        "events.odin",
        "velo_beamline.x",
        "velo_beamline.c00",
        "velo_end.tx",
        "velo_tracks.ip_chi2",
    ]
