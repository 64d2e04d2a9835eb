"""Metrics of each readout source.

A readout has a thousand sources, which make most lines of a scrape. The Prometheus client takes 60 ms to write these
lines, so this module writes them.
"""

from collections.abc import Iterable, Iterator, Sequence, Set
from typing import NamedTuple

from prometheus_client.core import CounterMetricFamily, GaugeMetricFamily, Metric

from hltnode.daemon.monitoring.counters import Counters


class SourceFamily(NamedTuple):
    """A metric with the label `source`: a counter, whose name ends in _total, or a gauge."""

    name: str
    text: str
    values: Sequence[tuple[int, float]]

    @property
    def is_counter(self) -> bool:
        """True for a counter."""
        return self.name.endswith("_total")

    def as_metric(self) -> Metric:
        """The metric as a family of the Prometheus client."""
        kind = CounterMetricFamily if self.is_counter else GaugeMetricFamily
        family = kind(self.name, self.text, labels=["source"])
        for source, value in self.values:
            family.add_metric([str(source)], value)
        return family

    def render(self) -> str:
        """The lines of the metric in /metrics."""
        kind = "counter" if self.is_counter else "gauge"
        name = self.name
        head = f"# HELP {name} {self.text}\n# TYPE {name} {kind}\n"
        return head + "".join([f'{name}{{source="{source}"}} {float(value)}\n' for source, value in self.values])


def source_families(
    counters: Counters, of_run: Iterable[int], silent: Set[int], *, monotonic_ns: int, wall_s: float
) -> Iterator[SourceFamily]:
    """The families, only with the sources of the current run: sources of an earlier run are not missing.

    The times are those of the snapshot of the counters.
    """
    sources = [(source, counters.sources[source]) for source in of_run]
    yield SourceFamily(
        "hltnode_source_fragments_received_total",
        "Fragments with the source in their header.",
        [(source, of.fragments) for source, of in sources],
    )
    yield SourceFamily(
        "hltnode_source_fragment_bytes_received_total",
        "Bytes of fragments with the source in their header.",
        [(source, of.bytes) for source, of in sources],
    )
    yield SourceFamily(
        "hltnode_source_missing_total",
        "MEPs closed without the source.",
        [(source, of.missing) for source, of in sources],
    )
    yield SourceFamily(
        "hltnode_source_late_total",
        "MEPs closed by their deadline (builder.mep_timeout_ms) without the source.",
        [(source, of.late) for source, of in sources],
    )
    yield SourceFamily(
        "hltnode_source_silent",
        "1 if other sources deliver and the source does not.",
        [(source, source in silent) for source, _ in sources],
    )
    yield SourceFamily(
        "hltnode_source_last_fragment_timestamp_seconds",
        "Unix time of the source's last fragment; absent before the first.",
        [
            (source, wall_s - (monotonic_ns - of.last_seen_ns) / 1e9)
            for source, of in sources
            if of.last_seen_ns is not None
        ],
    )
