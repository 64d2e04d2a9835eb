"""Passes a batch that has run to the checker: its tracks and vertices, and the truth banks of its events."""

import numpy as np

from hltnode.processing.framework.offline_runner import CompletedBatch
from hltnode.processing.lhcb.validation.checker.checker import Checker
from hltnode.processing.lhcb.validation.checker.particles import ParticleTable
from hltnode.processing.lhcb.validation.checker.reconstruction import reconstructed_batch
from hltnode.processing.lhcb.validation.checker.truth_check import read_truth
from hltnode.protocol.lhcb.lhcb_id import VP_TYPE


def check_batch(checker: Checker, batch: CompletedBatch) -> None:
    """Compare the events of a batch with their truth; those whose truth does not match are left out and counted."""
    found = reconstructed_batch(batch.workspace)
    events = [banks for mep in batch.meps for banks in mep.events]
    truth = [
        read_truth(banks, {VP_TYPE: hits}, checker.faults) for banks, hits in zip(events, found.velo_hits, strict=True)
    ]
    kept = np.array([it is not None for it in truth], dtype=bool)
    checker.add(
        ParticleTable.of_events([it.particles for it in truth if it is not None]),
        {stage: tracks.of_kept_events(kept) for stage, tracks in found.tracks.items()},
        [pvs for pvs, keep in zip(found.pvs, kept, strict=True) if keep],
        [it.vertices for it in truth if it is not None],
    )
