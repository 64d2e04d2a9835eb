"""Passes a batch that has run to the checker: its tracks and vertices, and the truth banks of its events."""

from collections.abc import Sequence

import numpy as np

from hltnode.processing.framework.offline_runner import CompletedBatch
from hltnode.processing.lhcb.offline.validation.checker.categories import Stage
from hltnode.processing.lhcb.offline.validation.checker.checker import Checker
from hltnode.processing.lhcb.offline.validation.checker.clusters import TrueHits
from hltnode.processing.lhcb.offline.validation.checker.particles import ParticleTable
from hltnode.processing.lhcb.offline.validation.checker.reconstruction import reconstructed_batch
from hltnode.processing.lhcb.offline.validation.checker.truth_check import read_truth
from hltnode.processing.lhcb.offline.validation.reference.comparison import ReferenceComparison
from hltnode.protocol.lhcb.lhcb_id import VP_TYPE


def check_batch(
    checker: Checker,
    batch: CompletedBatch,
    reference: ReferenceComparison | None = None,
    places: Sequence[TrueHits] | None = None,
) -> None:
    """Compare the events of a batch with their truth.

    Events that the global event cut has removed, and those whose truth does not match, are left out and counted. With a
    reference they are compared with that too. places: of the true VELO hits of each event, if the sample has them.
    """
    found = reconstructed_batch(batch.workspace)
    events = [banks for mep in batch.meps for banks in mep.events]
    if reference is not None:
        reference.add(events, found, batch.workspace)
    truth = [
        None if cut else read_truth(banks, hits, checker.faults)
        for banks, hits, cut in zip(events, found.hits, found.is_cut, strict=True)
    ]
    checker.cut_events += int(found.is_cut.sum())
    for i, of_event in enumerate(truth):
        if of_event is not None:
            ids, position = found.hits[i][VP_TYPE], found.velo_positions[i]
            true_ids = of_event.particles.velo_ids
            checker.clusters.add_event(ids, position, true_ids, None if places is None else places[i])
    kept = np.array([it is not None for it in truth], dtype=bool)
    two_track, clusters = found.two_track, found.clusters
    checker.add(
        ParticleTable.of_events([it.particles for it in truth if it is not None]),
        {stage: tracks.of_kept_events(kept) for stage, tracks in found.tracks.items()},
        [pvs for pvs, keep in zip(found.pvs, kept, strict=True) if keep],
        [it.vertices for it in truth if it is not None],
        None if two_track is None else two_track.of_kept_tracks(kept[found.tracks[Stage.LONG].event]),
        None if clusters is None else clusters.of_kept_events(kept),
        [it.showers for it in truth if it is not None],
        None if found.downstream is None else found.downstream.of_kept_events(kept),
        None
        if found.downstream_v0s is None or found.downstream is None
        else found.downstream_v0s.of_kept_tracks(kept[found.downstream.event]),
        None if found.stubs is None else found.stubs.of_kept_events(kept),
        None if found.halves is None else [it for it, keep in zip(found.halves, kept, strict=True) if keep],
    )
