"""Which events a line has triggered on signal: by a candidate all of whose tracks the signal has made."""

from collections.abc import Sequence

import numpy as np

from hltnode.processing.framework.collections import Collection
from hltnode.processing.lhcb.offline.validation.checker.categories import Stage
from hltnode.processing.lhcb.offline.validation.checker.particles import ParticleTable
from hltnode.processing.lhcb.offline.validation.checker.reconstruction import ReconstructedBatch
from hltnode.processing.lhcb.offline.validation.selections.signal import made_by_signal
from hltnode.processing.lhcb.primary_vertices.collections import pvs
from hltnode.processing.lhcb.tracks.long.collections import long_tracks
from hltnode.processing.lhcb.velo.collections import tracks as velo_tracks
from hltnode.processing.offline.arrays import Int64Array, Mask
from hltnode.processing.selection.lines.line import Line
from hltnode.processing.selection.studies.decided_events import DecidedEvents

_STAGES = {velo_tracks: Stage.VELO, long_tracks: Stage.LONG}
"""The tracks that candidates are made of, by their collection."""


class SignalTracks:
    """The tracks of a batch, and which of them the signal of their event has made."""

    def __init__(self, found: ReconstructedBatch, particles: ParticleTable) -> None:
        self._made: dict[Collection, tuple[Int64Array, Mask]] = {}
        for collection, stage in _STAGES.items():
            if stage in found.tracks:
                tracks = found.tracks[stage]
                first_row = np.searchsorted(tracks.event, np.arange(found.n_events))
                self._made[collection] = first_row, made_by_signal(tracks, particles)

    def triggered_by(self, line: Line, decided: DecidedEvents) -> Mask:
        """bool[events]: the line accepts the event, scalers included, by a candidate of the signal.

        False for candidates that are not made of tracks alone: whole events, primary vertices, clusters.
        """
        n_events = len(decided.events)
        accepted = np.zeros(n_events, dtype=bool)
        if not is_on_tracks(line):
            return accepted
        candidates, made_of = decided.candidates(line)
        if made_of.collection not in self._made:
            return accepted
        first_row, made = self._made[made_of.collection]
        strange = ~made[first_row[candidates.event[made_of.candidate]] + made_of.number]
        n_strange = np.bincount(made_of.candidate[strange], minlength=len(candidates.event))
        accepted[candidates.event[n_strange == 0]] = True
        return accepted & decided.passes_scalers(line)

    def triggered(self, lines: Sequence[Line], decided: DecidedEvents) -> Mask:
        """bool[events, lines]."""
        columns = [self.triggered_by(line, decided) for line in lines]
        return np.stack(columns, axis=1) if columns else np.zeros((len(decided.events), 0), dtype=bool)


def is_on_tracks(line: Line) -> bool:
    """Whether the candidates of a line are made of tracks, so that signal can have made them."""
    return line.variable is not None and line.variable.collection is not pvs
