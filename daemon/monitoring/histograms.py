"""Export of histograms: as Prometheus metrics, and as JSON in the UHI format.

UHI is the common interface of Python histogram libraries (https://uhi.readthedocs.io, "Serialization"); hist and
boost-histogram read it.
"""

import math
from collections.abc import Iterator, Sequence
from typing import Any

from prometheus_client.core import CounterMetricFamily, HistogramMetricFamily, Metric

from hltnode.daemon.common.vocabulary import OutsideRange
from hltnode.processing.framework.histograms import HistogramContent, HistogramShape

UHI_SCHEMA = 1


def histogram_metrics(histograms: Sequence[HistogramContent], max_buckets: int) -> Iterator[Metric]:
    """Two families. A histogram with more than max_buckets bins has its adjacent bins merged; with 0 there are none."""
    buckets = HistogramMetricFamily(
        "hltnode_histogram",
        "Values in the range of a monitoring histogram, since the start of the node; le in its unit.",
        labels=["histogram"],
    )
    outside = CounterMetricFamily(
        "hltnode_histogram_outside",
        "Values below the range of a monitoring histogram, above it, and not a number.",
        labels=["histogram", "kind"],
    )
    for content in histograms if max_buckets else ():
        buckets.add_metric([content.shape.name], _buckets(content, max_buckets), None)
        for kind, count in (
            (OutsideRange.UNDERFLOW, content.underflow),
            (OutsideRange.OVERFLOW, content.overflow),
            (OutsideRange.NOT_A_NUMBER, content.not_a_number),
        ):
            outside.add_metric([content.shape.name, kind], count)
    yield from (buckets, outside)


def _buckets(content: HistogramContent, max_buckets: int) -> list[tuple[str, float]]:
    """Upper edge and cumulative count of each bucket; the last bucket has no upper edge."""
    bins = content.shape.bins
    width = math.ceil(bins / max_buckets)
    ends = [*range(width, bins, width), bins]
    below, edges = content.bins.cumsum(), content.shape.edges
    named = [(f"{edges[end]:.9g}", int(below[end - 1])) for end in ends]
    return [*named, ("+Inf", int(below[-1]))]


def as_uhi(content: HistogramContent) -> dict[str, Any]:
    """A histogram in the JSON format of UHI."""
    shape = content.shape
    return {
        "uhi_schema": UHI_SCHEMA,
        "metadata": {
            "description": shape.description,
            "line": shape.line,
            "unit": shape.unit,
            "not_a_number": content.not_a_number,
        },
        "axes": [
            {
                "type": "regular",
                "lower": shape.low,
                "upper": shape.high,
                "bins": shape.bins,
                "underflow": True,
                "overflow": True,
                "circular": False,
                "metadata": {"name": "x", "label": label_of(shape)},
            }
        ],
        "storage": {"type": "int", "values": [int(count) for count in content.counts[:-1]]},
    }


def label_of(shape: HistogramShape) -> str:
    """Label of the axis."""
    text = shape.description or shape.name
    return f"{text} [{shape.unit}]" if shape.unit else text
