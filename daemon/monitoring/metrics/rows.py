"""Row of the table of metrics: name, help text, labels, and a function that reads the values."""

from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass
from enum import Enum
from functools import partial
from typing import Any, NamedTuple

from prometheus_client.core import (
    CounterMetricFamily,
    GaugeMetricFamily,
    HistogramMetricFamily,
    InfoMetricFamily,
    Metric,
)

from hltnode.daemon.monitoring.counters import Counters, Histogram
from hltnode.daemon.monitoring.health import Condition
from hltnode.daemon.monitoring.node_state import NodeState
from hltnode.processing.framework.memory_plan import SlotMemory

PREFIX = "hltnode_"


@dataclass(frozen=True, slots=True, kw_only=True)
class Readings:
    """All sources of the metrics of a node, at one moment."""

    counters: Counters
    state: NodeState
    memory: SlotMemory
    build: Mapping[str, str]
    """Labels of `hltnode_build_info`."""
    feeders_expected: int
    problems: frozenset[Condition]
    """Violated conditions of readiness."""
    is_healthy: bool


class Kind(Enum):
    """The type of a metric; its value is the family of the Prometheus client."""

    COUNTER = CounterMetricFamily
    GAUGE = GaugeMetricFamily
    HISTOGRAM = HistogramMetricFamily
    INFO = InfoMetricFamily


Value = float | Histogram | Mapping[str, str]
ByLabel = Callable[["Readings"], Iterable[tuple[str, Value]]]
Samples = Iterable[tuple[tuple[str, ...], Value]]


class Row(NamedTuple):
    """One metric. `samples` returns a value for each combination of label values that is exported."""

    kind: Kind
    name: str
    text: str
    labels: tuple[str, ...]
    samples: Callable[[Readings], Samples]

    def family(self, readings: Readings) -> Metric:
        """The metric with its samples, for the Prometheus client."""
        family: Any = self.kind.value(PREFIX + self.name, self.text, labels=self.labels)
        for labels, value in self.samples(readings):
            names = list(map(str, labels))
            if isinstance(value, Histogram):
                family.add_metric(names, _buckets(value), value.total)
            else:
                family.add_metric(names, value if isinstance(value, Mapping) else float(value))
        metric: Metric = family
        return metric


def _buckets(histogram: Histogram) -> list[tuple[str, float]]:
    """Upper bound and cumulative count of each bucket."""
    buckets, below = [], 0
    for bound, count in zip((*map(str, histogram.bounds), "+Inf"), histogram.counts, strict=True):
        below += count
        buckets.append((bound, float(below)))
    return buckets


def _row(kind: Kind, name: str, text: str, value: Callable[[Readings], Value]) -> Row:
    return Row(kind, name, text, (), lambda readings: [((), value(readings))])


def _rows_by_label(kind: Kind, name: str, text: str, label: str, values: ByLabel) -> Row:
    return Row(kind, name, text, (label,), lambda readings: [((key,), value) for key, value in values(readings)])


info = partial(_row, Kind.INFO)
counter = partial(_row, Kind.COUNTER)
gauge = partial(_row, Kind.GAUGE)
histogram = partial(_row, Kind.HISTOGRAM)
"""Rows of metrics without labels."""
counters = partial(_rows_by_label, Kind.COUNTER)
gauges = partial(_rows_by_label, Kind.GAUGE)
histograms = partial(_rows_by_label, Kind.HISTOGRAM)
"""Rows of metrics with one label."""
