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
        refused = CounterMetricFamily(
            "hltnode_combiner_refused_messages", "Messages that were refused.", labels=["reason"]
        )
        for reason, n in combiner.refused.items():
            refused.add_metric([str(reason)], n)
        yield refused
        ended = CounterMetricFamily(
            "hltnode_combiner_connections_refused", "Connections that a limit ended.", labels=["reason"]
        )
        for (_, why), n in combiner.operation.connections_refused.items():
            ended.add_metric([str(why)], n)
        yield ended
        [connections] = combiner.operation.open_connections.values()
        yield GaugeMetricFamily("hltnode_combiner_connections", "Open connections.", connections)
        for name, text, value in (
            ("seeds", "Seeds of all nodes.", counts.seeds),
            ("windows", "Windows of decided slices, of all nodes.", counts.windows),
            ("external_windows", "External windows.", counts.external),
            ("repeated_reports", "Reports of a slice that was decided already, or that came again.", counts.repeated),
            ("whole_slices", "Slices with more seeds or windows than a message holds.", counts.whole),
            ("forgotten_slices", "Slices that were forgotten to free memory.", counts.forgotten),
            ("unsent_messages", "Messages that could not be sent.", combiner.unsent),
        ):
            yield CounterMetricFamily(f"hltnode_combiner_{name}", text, value=value)
        yield GaugeMetricFamily("hltnode_combiner_open_slices", "Slices that wait for reports.", joiner.open_slices)
        yield GaugeMetricFamily("hltnode_combiner_bytes", "Memory of seeds and windows.", joiner.nbytes)
