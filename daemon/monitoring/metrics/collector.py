"""Prometheus metrics, read from the counters at scrape time.

`table` declares them. Naming follows Prometheus' rules: prefix `hltnode_`, base units, `_total` for counters.
tools/generate_reference.py writes docs/reference/metrics.md from the families of `NodeCollector.collect`.
"""

from collections.abc import Iterable, Iterator, Sequence
from dataclasses import asdict, dataclass

from prometheus_client import CollectorRegistry, ProcessCollector, generate_latest
from prometheus_client.core import Metric
from prometheus_client.registry import Collector

from hltnode.daemon.monitoring.counters import Counters
from hltnode.daemon.monitoring.health import Health
from hltnode.daemon.monitoring.histograms import histogram_metrics
from hltnode.daemon.monitoring.metrics.gpu import gpu_metrics
from hltnode.daemon.monitoring.metrics.rows import Readings
from hltnode.daemon.monitoring.metrics.sources import SourceFamily, source_families
from hltnode.daemon.monitoring.metrics.table import TABLE
from hltnode.daemon.monitoring.node_state import NodeState
from hltnode.processing.framework.histograms import HistogramContent
from hltnode.processing.framework.memory_plan import SlotMemory


@dataclass(frozen=True, slots=True, kw_only=True)
class BuildInfo:
    """Constant labels of `hltnode_build_info`."""

    version: str
    node: str
    backend: str
    chain: str
    tck: str


class NodeCollector(Collector):
    """Turns a snapshot of `Counters`, `Health` and `NodeState` into metric families, in any thread.

    Args:
        health_ns: time of the snapshot on the clock of `Health`.
        monotonic_ns, wall_s: monotonic and Unix time of the snapshot.
        histograms, histogram_buckets: content of the histograms, and the maximum number of buckets of each.
    """

    def __init__(
        self,
        counters: Counters,
        health: Health,
        info: BuildInfo,
        state: NodeState,
        memory: SlotMemory,
        *,
        health_ns: int,
        monotonic_ns: int,
        wall_s: float,
        histograms: Sequence[HistogramContent] = (),
        histogram_buckets: int = 0,
    ) -> None:
        self._histograms = histograms
        self._histogram_buckets = histogram_buckets
        self._counters = counters
        self._health = health
        self._info = info
        self._state = state
        self._memory = memory
        self._health_ns = health_ns
        self._monotonic_ns = monotonic_ns
        self._wall_s = wall_s

    def describe(self) -> Iterable[Metric]:
        """Return nothing, so that registration does not collect."""
        return ()

    def collect(self) -> Iterator[Metric]:
        """All families; each known label value has a sample from the start, with 0."""
        yield from self.of_the_node()
        for family in self.of_sources():
            yield family.as_metric()

    def of_sources(self) -> Iterator[SourceFamily]:
        """The families with one line per source."""
        state = self._state
        return source_families(
            self._counters,
            state.sources,
            state.silent_sources,
            monotonic_ns=self._monotonic_ns,
            wall_s=self._wall_s,
        )

    def of_the_node(self) -> Iterator[Metric]:
        """All other families."""
        readings = Readings(
            counters=self._counters,
            state=self._state,
            memory=self._memory,
            build=asdict(self._info),
            feeders_expected=max(self._health.feeders_expected, self._health.feeders_needed),
            problems=frozenset(self._health.problems(self._health_ns)),
            is_healthy=not self._health.health_problems(self._health_ns),
        )
        for row in TABLE:
            yield row.family(readings)
        yield from gpu_metrics(self._state.gpu)
        yield from histogram_metrics(self._histograms, self._histogram_buckets)


class _OfTheNode(Collector):
    def __init__(self, collector: NodeCollector) -> None:
        self._collector = collector

    def describe(self) -> Iterable[Metric]:
        return ()

    def collect(self) -> Iterator[Metric]:
        return self._collector.of_the_node()


def render(collector: NodeCollector) -> bytes:
    """The metrics of a node, and those of its process (memory, CPU, file descriptors, start time), as text.

    Format `hltnode.daemon.monitoring.http_server.METRICS_TYPE`.
    """
    registry = CollectorRegistry(auto_describe=False)
    registry.register(_OfTheNode(collector))
    ProcessCollector(registry=registry)
    return generate_latest(registry) + "".join(family.render() for family in collector.of_sources()).encode()
