"""Histograms that are filled with any lines. Numbers span powers of ten, so bins are quarters of powers of two."""

from typing import Any

from hltnode.processing.imaging.lines.inputs import components, event
from hltnode.processing.selection.expressions.functions import log, maximum
from hltnode.processing.selection.lines.histogram import Histogram

_PER_LOG = 1.4426950408889634
"""1 / ln 2."""


def _log2(number: Any) -> Any:
    """0 for 0 and for 1."""
    return log(maximum(number, 1) * 1.0) * _PER_LOG


IMAGE_HISTOGRAMS = (
    Histogram("image_components_log2", lambda e: _log2(e.n_components), 112, 0, 28, of=event,
              description="power of two of the components of an image"),
    Histogram("image_runs_log2", lambda e: _log2(e.n_runs), 112, 0, 28, of=event,
              description="power of two of the runs of an image"),
    Histogram("component_area_log2", lambda c: _log2(c.area), 112, 0, 28, of=components,
              description="power of two of the pixels of a component"),
    Histogram("component_width", lambda c: c.width, 128, -0.5, 255.5, of=components,
              description="columns of the box of a component"),
    Histogram("component_height", lambda c: c.height, 128, -0.5, 255.5, of=components,
              description="rows of the box of a component"),
)  # fmt: skip
