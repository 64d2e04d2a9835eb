"""Histograms that are filled with any lines."""

from hltnode.processing.na62.lines.inputs import event, rings
from hltnode.processing.na62.rich.collections import MAX_RINGS
from hltnode.processing.selection.lines.histogram import Histogram
from hltnode.protocol.na62.rich_banks import MAX_HITS

RICH_HISTOGRAMS = (
    Histogram("rich_hits", lambda e: e.n_hits, MAX_HITS + 1, -0.5, MAX_HITS + 0.5, of=event,
              description="hits of an event"),
    Histogram("rings", lambda e: e.n_rings, MAX_RINGS + 1, -0.5, MAX_RINGS + 0.5, of=event,
              description="rings of an event"),
    Histogram("ring_radius", lambda r: r.radius, 100, 0, 250, of=rings, description="radius of a ring in mm"),
    Histogram("ring_x", lambda r: r.x, 100, -300, 300, of=rings, description="x of the centre of a ring in mm"),
    Histogram("ring_y", lambda r: r.y, 100, -300, 300, of=rings, description="y of the centre of a ring in mm"),
    Histogram("missing_mass2_pion", lambda r: r.missing_mass2_pion, 100, -0.1, 0.15, of=rings,
              description="square of the missing mass of a pion in (GeV/c2)^2"),
)  # fmt: skip
