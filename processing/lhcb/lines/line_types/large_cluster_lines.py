"""The line on VELO tracks with large clusters (docs/physics/large-clusters.md)."""

from typing import Any

from pydantic.dataclasses import dataclass

from hltnode.processing.lhcb.lines.cuts import Count, Positive
from hltnode.processing.lhcb.lines.inputs.track_fields import velo_tracks
from hltnode.processing.selection.lines.histogram import Histogram
from hltnode.processing.selection.lines.line_type import VALIDATED, LineType


@dataclass(frozen=True, config=VALIDATED)
class VeloLargeClusters(LineType):
    """A forward VELO track above `min_eta` with at least `min_clusters` large clusters.

    Particles that ionise more than others leave them. `velo_large_clusters` counts them, for tracks above η = 4.99 with
    five hits.
    """

    input = velo_tracks
    histograms = (
        Histogram(
            "n", lambda t: t.large_clusters, 27, -0.5, 26.5, description="large clusters of selected VELO tracks"
        ),
    )

    min_eta: Positive = 5.0
    min_clusters: Count = 5

    def selects(self, candidate: Any) -> Any:
        return ~candidate.backward & (candidate.eta > self.min_eta) & (candidate.large_clusters >= self.min_clusters)


TYPES = (VeloLargeClusters,)
LINES = (VeloLargeClusters("Hlt1VeloLargeClusters"),)
"""Those of the sequence that counts large clusters."""
