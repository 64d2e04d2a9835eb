"""Prometheus metrics of a combiner."""

from collections.abc import Iterable, Iterator

from prometheus_client.core import CounterMetricFamily, GaugeMetricFamily, Metric
from prometheus_client.registry import Collector

from hltnode.daemon.combiner.combiner import Combiner


class CombinerCollector(Collector):
    """Reads the plain integers of a combiner, in any thread."""

    def __init__(self, combiner: Combiner) -> None:
        self._combiner = combiner

    def describe(self) -> Iterable[Metric]:
        """Return nothing, so that registration does not collect."""
        return ()

    def collect(self) -> Iterator[Metric]:
        """All families."""
        combiner, joiner = self._combiner, self._combiner.joiner
        counts = joiner.counts
        slices = CounterMetricFamily("hltnode_combiner_slices", "Decided slices, by their end.", labels=["end"])
        for how, n in counts.slices.items():
            slices.add_metric([str(how)], n)
        yield slices
        reports = CounterMetricFamily("hltnode_combiner_reports", "Slices that nodes reported.", labels=["node"])
        lost = GaugeMetricFamily("hltnode_combiner_node_lost", "1 if a node is silent.", labels=["node"])
        for name, node in list(combiner.nodes.items()):
            reports.add_metric([name], node.reports)
            lost.add_metric([name], node.is_lost)
        yield reports
        yield lost
        for name, text, value in (
            ("seeds", "Seeds of all nodes.", counts.seeds),
            ("windows", "Windows of decided slices, of all nodes.", counts.windows),
            ("external_windows", "External windows.", counts.external),
            ("repeated_reports", "Reports of a slice that was decided already, or that came again.", counts.repeated),
            ("whole_slices", "Slices with more seeds or windows than a message holds.", counts.whole),
            ("forgotten_slices", "Slices that were forgotten to free memory.", counts.forgotten),
            ("refused_messages", "Messages that were refused.", combiner.refused),
            ("unsent_messages", "Messages that could not be sent.", combiner.unsent),
        ):
            yield CounterMetricFamily(f"hltnode_combiner_{name}", text, value=value)
        yield GaugeMetricFamily("hltnode_combiner_open_slices", "Slices that wait for reports.", joiner.open_slices)
        yield GaugeMetricFamily("hltnode_combiner_bytes", "Memory of seeds and windows.", joiner.nbytes)
