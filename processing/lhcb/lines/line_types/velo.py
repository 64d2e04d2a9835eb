"""Lines on VELO tracks (docs/physics/selection-lines.md)."""

from typing import Any

from pydantic.dataclasses import dataclass

from hltnode.processing.lhcb.lines.cuts import Count, Distance, Positive
from hltnode.processing.lhcb.lines.inputs.event_fields import event
from hltnode.processing.lhcb.lines.inputs.track_fields import velo_tracks
from hltnode.processing.selection.expressions.units import mm
from hltnode.processing.selection.lines.inputs import count_of
from hltnode.processing.selection.lines.line_type import VALIDATED, LineType


@dataclass(frozen=True, config=VALIDATED)
class VeloMicroBias(LineType):
    """Events with at least `min_tracks` VELO tracks."""

    input = event

    min_tracks: Count = 1

    def selects(self, candidate: Any) -> Any:
        return candidate.n_velo_tracks >= self.min_tracks


@dataclass(frozen=True, config=VALIDATED)
class VeloClustersMicroBias(LineType):
    """Events with at least `min_clusters` VELO clusters."""

    input = event

    min_clusters: Count = 1

    def selects(self, candidate: Any) -> Any:
        return candidate.n_velo_clusters >= self.min_clusters


@dataclass(frozen=True, config=VALIDATED)
class NDisplacedVeloTracks(LineType):
    """Events with at least `min_tracks` displaced VELO tracks.

    A track is displaced if it flies forward and if its impact parameter to the nearest primary vertex (the one with the
    smallest) lies between `min_ip` and `max_ip` (mm) and is significant: IP chi2 above `min_ip_chi2`. The cuts keep one
    simulated minimum-bias event in five. `max_ip` removes most tracks from strange decays and from material.
    """

    input = event

    min_tracks: Count = 3
    min_ip: Distance = 0.5
    max_ip: Distance = 1.5
    min_ip_chi2: Positive = 400.0

    def selects(self, candidate: Any) -> Any:  # noqa: ARG002
        displaced = count_of(
            velo_tracks,
            lambda t: (
                t.has_pv
                & ~t.backward
                & (t.ip > self.min_ip * mm)
                & (t.ip < self.max_ip * mm)
                & (t.ip_chi2 > self.min_ip_chi2)
            ),
        )
        return displaced >= self.min_tracks
