"""Histograms as inline SVG: one path each, in the colours of the page."""

import math
from dataclasses import dataclass

import numpy as np

from hltnode.daemon.monitoring.histograms import label_of
from hltnode.processing.framework.histograms import HistogramContent

WIDTH, HEIGHT = 260, 120
"""Size of the area of the bins, in units of the drawing."""
MAX_STEPS = 1024
"""Most steps of an outline."""


@dataclass(frozen=True, slots=True)
class DrawnHistogram:
    """`path`: outline of the bins (SVG), empty for a histogram without entries in its range."""

    name: str
    label: str
    line: str
    path: str
    low: str
    high: str
    highest: int
    entries: int
    below: int
    above: int
    mean: str


def drawn_histogram(content: HistogramContent) -> DrawnHistogram:
    """The drawing of a histogram."""
    shape, bins = content.shape, content.bins
    # Bins that are narrower than a pixel are drawn together.
    drawn = np.add.reduceat(bins, np.arange(0, shape.bins, math.ceil(shape.bins / MAX_STEPS)))
    highest = int(drawn.max(initial=0))
    path = mean = ""
    if highest:
        x = np.round(np.linspace(0, WIDTH, len(drawn) + 1), 1).tolist()
        y = np.round(HEIGHT * (1 - drawn / highest), 1).tolist()
        steps = "".join([f"V{top:g}H{right:g}" for top, right in zip(y, x[1:], strict=True)])
        path = f"M0 {HEIGHT}{steps}V{HEIGHT}Z"
        centres = (shape.edges[1:] + shape.edges[:-1]) / 2
        mean = f"{np.average(centres, weights=bins):.4g}"
    return DrawnHistogram(
        name=shape.name,
        label=label_of(shape),
        line=shape.line,
        path=path,
        low=f"{shape.low:g}",
        high=f"{shape.high:g}",
        highest=highest,
        entries=content.entries,
        below=content.underflow,
        above=content.overflow,
        mean=mean,
    )
