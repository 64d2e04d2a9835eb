"""Histograms as metrics and as JSON: content and bounded size."""

from __future__ import annotations

import json

import hist
import numpy as np
import uhi.io.json
from prometheus_client import CollectorRegistry, generate_latest
from prometheus_client.core import Metric
from prometheus_client.registry import Collector

from hltnode.daemon.monitoring.histograms import as_uhi, histogram_metrics
from hltnode.processing.framework.histograms import HistogramContent, HistogramShape


def content(bins: int, name: str = "pv_z") -> HistogramContent:
    counts = np.arange(1, bins + 4, dtype=np.uint64)
    return HistogramContent(HistogramShape(name=name, bins=bins, low=-1.0, high=1.0, unit="mm"), counts)


def page(contents: list[HistogramContent], max_buckets: int) -> list[str]:
    class Only(Collector):
        def collect(self) -> list[Metric]:
            return list(histogram_metrics(contents, max_buckets))

    registry = CollectorRegistry()
    registry.register(Only())
    return [line for line in generate_latest(registry).decode().splitlines() if not line.startswith("#")]


def test_buckets_are_cumulative_and_values_outside_the_range_are_separate() -> None:
    assert page([content(4)], 50) == [
        'hltnode_histogram_bucket{histogram="pv_z",le="-0.5"} 2.0',
        'hltnode_histogram_bucket{histogram="pv_z",le="0"} 5.0',
        'hltnode_histogram_bucket{histogram="pv_z",le="0.5"} 9.0',
        'hltnode_histogram_bucket{histogram="pv_z",le="1"} 14.0',
        'hltnode_histogram_bucket{histogram="pv_z",le="+Inf"} 14.0',
        'hltnode_histogram_outside_total{histogram="pv_z",kind="underflow"} 1.0',
        'hltnode_histogram_outside_total{histogram="pv_z",kind="overflow"} 6.0',
        'hltnode_histogram_outside_total{histogram="pv_z",kind="not_a_number"} 7.0',
    ]


def test_a_histogram_with_many_bins_becomes_a_bounded_number_of_buckets_with_the_same_sum() -> None:
    for bins in (1, 49, 50, 51, 100, 999, 1000):
        lines = page([content(bins)], 50)
        buckets = [line for line in lines if "_bucket" in line]
        assert len(buckets) <= 51
        assert float(buckets[-1].split()[-1]) == float(buckets[-2].split()[-1]) == content(bins).bins.sum()
        assert 'le="1"' in buckets[-2]


def test_without_buckets_there_are_no_histograms_in_the_metrics() -> None:
    assert page([content(4)], 0) == []


def test_hist_reads_the_json() -> None:
    text = json.dumps(as_uhi(content(4)))
    read = hist.Hist(json.loads(text, object_hook=uhi.io.json.object_hook))
    assert read.values(flow=True).tolist() == [1, 2, 3, 4, 5, 6]
    assert read.axes[0].edges.tolist() == [-1.0, -0.5, 0.0, 0.5, 1.0]
