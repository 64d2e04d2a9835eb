"""Prometheus metrics, read from the counters at scrape time.

Naming follows Prometheus' rules: prefix `hltnode_`, base units, `_total` for counters. docs/reference/metrics.md is
generated from what `NodeCollector.collect` yields, by tools/generate_reference.py.
"""

from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass

from prometheus_client import CollectorRegistry, ProcessCollector, generate_latest
from prometheus_client.core import (
    CounterMetricFamily,
    GaugeMetricFamily,
    HistogramMetricFamily,
    InfoMetricFamily,
    Metric,
)
from prometheus_client.registry import Collector

from hltnode.daemon.monitoring.counters import Counters, Histogram
from hltnode.daemon.monitoring.gpu_metrics import gpu_metrics
from hltnode.daemon.monitoring.health import Condition, Health
from hltnode.daemon.monitoring.histograms import histogram_metrics
from hltnode.daemon.monitoring.node_state import NodeState
from hltnode.daemon.monitoring.operation_counters import operation_metrics
from hltnode.daemon.monitoring.source_metrics import SourceFamily, source_families
from hltnode.processing.framework.histograms import HistogramContent
from hltnode.processing.framework.memory_plan import SlotMemory

PREFIX = "hltnode_"
# Lost feeders that are named; of a thousand the first few say what they have in common.
SHOWN_FEEDERS = 16


@dataclass(frozen=True, slots=True, kw_only=True)
class BuildInfo:
    """What is running: constant labels of `hltnode_build_info`."""

    version: str
    node: str
    backend: str
    chain: str
    tck: str


class NodeCollector(Collector):
    """Turns a snapshot of `Counters`, `Health` and `NodeState` into metric families, in any thread.

    Args:
        health_ns: time of the clock of the health.
        monotonic_ns, wall_s: monotonic and Unix time of the snapshot.
        histograms, histogram_buckets: what the histograms hold, and the most buckets that one of them becomes.
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
        """Nothing, so that registering does not collect."""
        return ()

    def collect(self) -> Iterator[Metric]:
        """All families; a known label value is there from the start, with 0."""
        yield from self.of_the_node()
        for family in self.of_sources():
            yield family.as_metric()

    def of_sources(self) -> Iterator[SourceFamily]:
        """The families with a line for each source."""
        state = self._state
        return source_families(
            self._counters,
            state.sources,
            state.silent_sources,
            monotonic_ns=self._monotonic_ns,
            wall_s=self._wall_s,
        )

    def of_the_node(self) -> Iterator[Metric]:
        """All others."""
        state = self._state
        yield from self._node(state)
        yield from self._fragments(state)
        yield from self._control(state)
        yield from self._building(state)
        yield from self._pipeline(state)
        yield from self._decisions()
        yield from self._outputs(state)
        yield from gpu_metrics(state.gpu)
        yield from histogram_metrics(self._histograms, self._histogram_buckets)
        yield from operation_metrics(self._counters.operation, state.run_state)

    def _node(self, state: NodeState) -> Iterator[Metric]:
        info = self._info
        labels = {"version": info.version, "node": info.node, "backend": info.backend}
        labels |= {"chain": info.chain, "tck": info.tck}
        yield InfoMetricFamily(PREFIX + "build", "What is running on this node.", labels)
        labels = {"run": str(state.run), "state": state.run_state, "version": info.version, "tck": info.tck}
        yield InfoMetricFamily(PREFIX + "run", "The run, its state, and what decides on its events.", labels)
        yield _gauge("run_active", "1 from when all feeders of a run have come until its end.", state.run_active)
        yield _gauge("run_number", "Run that the node takes data of; 0 before the first feeder.", state.run)
        problems = self._health.problems(self._health_ns)
        unhealthy = self._health.health_problems(self._health_ns)
        text = "1 if the loop and the pipeline tick, MEPs are acknowledged and the disk takes events."
        yield _gauge("healthy", text, not unhealthy)
        yield _gauge("ready", "1 if feeders may send.", not problems)
        held = {condition: condition not in problems for condition in Condition}
        yield _gauges("condition", "1 if the condition of readiness holds.", "condition", held.items())
        yield _gauge("event_loop_lag_seconds", "Delay of the last timer of the event loop.", self._counters.loop_lag)
        lag_max = self._counters.loop_lag_max
        yield _gauge("event_loop_lag_max_seconds", "Largest delay of a timer of the event loop.", lag_max)
        stalls = self._counters.loop_stalls
        yield _counter("event_loop_stalls", "Timers of the event loop that came more than 0.25 s late.", stalls)
        exceptions = tuple(self._counters.exceptions.items())
        yield _counters("exceptions", "Contained errors by the part where they appeared.", "where", exceptions)

    def _fragments(self, state: NodeState) -> Iterator[Metric]:
        c = self._counters
        text = "Frames taken from the data socket and shared memory."
        yield _counter("fragments_received", text, c.fragments_received)
        yield _counter("fragment_bytes_received", "Bytes of these frames.", c.fragment_bytes_received)
        yield _counter("fragments_built", "Fragments of MEPs that were closed and built.", c.fragments_built)
        yield _counter("fragments_lost_in_drop", "Fragments of open MEPs that were revoked.", c.fragments_lost_in_drop)
        yield _counter("fragments_abandoned", "Fragments of MEPs open at a forced stop.", c.fragments_abandoned)
        text = "Fragments of MEPs that are open: received = built + lost_in_drop + abandoned + rejected + in_build."
        yield _gauge("fragments_in_build", text, state.fragments_in_build)
        yield _counters("fragments_rejected", "Fragments refused, by reason.", "reason", c.fragments_rejected.items())

    def _control(self, state: NodeState) -> Iterator[Metric]:
        c = self._counters
        yield _gauge("feeders_connected", "Feeders that have said hello and not goodbye.", state.feeders_connected)
        yield _gauge("feeders_expected", "Feeders that the configuration asks for.", self._health.feeders_expected)
        lost = state.lost_feeders
        text = "Feeders of the run that had more to send and have gone or fallen silent."
        yield _gauge("feeders_lost", text, len(lost))
        yield _gauges("feeder_lost", "1 for some of these.", "name", [(name, 1) for name in lost[:SHOWN_FEEDERS]])
        yield _gauge("sources_expected", "Sources of the run; 0 without one.", len(state.sources))
        of_lost = len(state.sources_of_lost_feeders)
        silent = (("connected", len(state.silent_sources) - of_lost), ("lost", of_lost))
        text = "Sources that do not deliver while others do, by what their feeder is."
        yield _gauges("sources_silent", text, "feeder", silent)
        yield _counter("control_messages_received", "Control messages understood.", c.control_messages_received)
        yield _counter("control_messages_rejected", "Control messages refused.", c.control_messages_rejected)
        yield _counter("control_messages_unsent", "Messages to feeders gone or not reading.", c.control_messages_unsent)
        yield _counters("hellos_refused", "Hellos of feeders refused, by reason.", "reason", c.hellos_refused.items())
        refused = c.messages_refused.items()
        yield _counters("control_messages_refused", "Other messages refused, by reason.", "reason", refused)
        yield _gauge("runs_kept", "Runs that feeders have not confirmed, beside the current one.", state.runs_kept)
        yield _counter("credits_granted", "MEPs that feeders were allowed to send.", c.credits_granted)
        yield _gauge("credits_outstanding", "MEPs allowed and not yet opened.", state.credits_outstanding)
        yield _counter("meps_acknowledged", "MEPs acknowledged to the feeders.", c.meps_acknowledged)
        yield _counter("nacks_sent", "Refusals sent to feeders.", c.nacks_sent)
        yield _counter("tap_meps", "MEPs that the tap has published for a recorder.", c.tap.meps)
        yield _counter("tap_meps_dropped", "MEPs that the tap has dropped because a recorder was slow.", c.tap.dropped)

        shared = c.shared_memory
        yield _gauge("shared_memory_segments", "Segments of feeders of this machine.", shared.segments)
        yield _gauge("shared_memory_bytes", "Bytes of these segments.", shared.bytes)
        text = "Messages that named frames in shared memory."
        yield _counter("shared_memory_range_messages", text, shared.range_messages)
        text = "Segments that were released because their feeder had ended without detaching them."
        yield _counter("shared_memory_left", text, shared.left)
        text = "Connections to the memory socket that the node has ended, by reason."
        yield _counters("shared_memory_refused", text, "reason", shared.refused.items())

    def _building(self, state: NodeState) -> Iterator[Metric]:
        c = self._counters
        yield _counter("meps_opened", "MEPs of which a fragment arrived.", c.meps_opened)
        yield _counters("meps_closed", "MEPs closed, by reason.", "reason", c.meps_closed.items())
        yield _counter("meps_abandoned", "MEPs open at a forced stop, or revoked.", c.meps_abandoned)
        yield _gauge("meps_open", "MEPs in build: opened = closed + abandoned + open.", state.meps_open)
        yield _counter("accounting_broken", "Ends of runs with fragments or MEPs in no class.", c.accounting_broken)

    def _pipeline(self, state: NodeState) -> Iterator[Metric]:
        c = self._counters
        yield _gauges("slots", "Slots by state.", "state", state.slots.items())
        memory = self._memory
        kinds = (("device", memory.device), ("pinned", memory.pinned), ("thread", memory.thread))
        text = "Bytes of a slot on the device and pinned on the host; thread: bytes of each worker thread."
        yield _gauges("slot_bytes", text, "memory", kinds)
        yield _gauge("plan_bytes_per_event", "Bytes that the largest batch takes for each event.", memory.per_event)
        yield _counter("batches", "Batches computed.", c.batches)
        stages = HistogramMetricFamily(PREFIX + "stage_seconds", "Time of a batch in a stage.", labels=["stage"])
        for stage, histogram in c.stages.items():
            _with_buckets(stages, [stage], histogram)
        yield stages
        text = "Time of a MEP in a stage on the way from its first fragment to its decision."
        mep_stages = HistogramMetricFamily(PREFIX + "mep_stage_seconds", text, labels=["stage"])
        for mep_stage, histogram in c.mep_stages.items():
            _with_buckets(mep_stages, [mep_stage], histogram)
        yield mep_stages
        text = "From the first fragment of a MEP until its decision is sent: the sum of its stages."
        yield _with_buckets(HistogramMetricFamily(PREFIX + "mep_latency_seconds", text), [], c.mep_latency)
        end_to_end = HistogramMetricFamily(
            PREFIX + "end_to_end_seconds", "From the close of a MEP until its decision is sent."
        )
        yield _with_buckets(end_to_end, [], c.end_to_end)
        yield _counter("backend_errors", "Batches that the back end could not compute.", c.backend_errors)
        text = "MEPs sent to the error stream without being computed, since sessions of the node had ended on them."
        yield _counter("meps_not_processed", text, c.meps_not_processed)
        yield _counters("dead_time_seconds", "Time without free credits, by reason.", "reason", c.dead_time.items())

    def _decisions(self) -> Iterator[Metric]:
        c = self._counters
        yield _counter("events_processed", "Events with a decision.", c.events_processed)
        yield _counter("events_accepted", "Events that at least one line accepted.", c.events_accepted)
        yield _counters("events_flagged", "Events that carry the flag.", "flag", c.events_flagged.items())
        yield _counters(
            "line_accepts", "Events that the line accepted.", "line", zip(c.lines, c.line_accepts, strict=True)
        )
        objects = tuple(c.objects.items())
        text = "Selected candidates that did not fit in the reports of their events."
        yield _counter("report_candidates_left_out", text, c.candidates_left_out)
        yield _counters("objects", "Objects found in events, by collection of the chain.", "collection", objects)

    def _outputs(self, state: NodeState) -> Iterator[Metric]:
        decisions = self._counters.decisions
        writer = self._counters.writer
        outputs = self._counters.outputs.items()
        yield _counters("output_messages_sent", "Messages sent.", "output", [(n, o.sent) for n, o in outputs])
        dropped = [(name, sum(output.dropped.values())) for name, output in outputs]
        yield _counters("output_messages_dropped", "Messages that the output's policy dropped.", "output", dropped)
        blocked = [(name, output.blocked) for name, output in outputs]
        yield _counters("output_blocked", "Attempts that the consumer's queue refused.", "output", blocked)
        queued = [(name, output.queued) for name, output in outputs]
        yield _gauges("output_messages_queued", "Messages kept for a slow consumer.", "output", queued)
        yield _counter("decisions_published", "Decisions handed to the publisher's socket.", decisions.sent)
        yield _counters("decisions_dropped", "Decisions not published, by reason.", "reason", decisions.dropped.items())
        yield _counter("decisions_blocked", "Attempts that a full subscriber queue refused.", decisions.blocked)
        yield _gauge("decision_subscriptions", "Subscriptions to the decision stream.", decisions.subscribers)
        streams = writer.streams
        events = [(stream, counters.events) for stream, counters in streams.items()]
        nbytes = [(stream, counters.bytes) for stream, counters in streams.items()]
        files = [(stream, counters.files) for stream, counters in streams.items()]
        yield _counters("events_written", "Events handed to the disk.", "stream", events)
        yield _counters("event_bytes_written", "Bytes handed to the disk.", "stream", nbytes)
        yield _counters("event_files_finished", "Files renamed to their final name.", "stream", files)
        left_out = [(stream, counters.dropped) for stream, counters in streams.items()]
        yield _counters("events_dropped", "Events not written because the disk refused.", "stream", left_out)
        yield _counters("write_errors", "Attempts that the disk refused.", "kind", writer.errors.items())
        yield _gauge("event_bytes_pending", "Bytes waiting for the disk.", writer.pending_bytes)
        text = "Records and decisions of batches that are gathered and not yet acknowledged."
        yield _gauge("output_queue_bytes", text, state.output_queue_bytes)
        by_reason = writer.quarantined_events.items()
        yield _counters("quarantined_events", "Events moved to quarantine/, by reason.", "reason", by_reason)
        by_reason = writer.quarantined_files.items()
        yield _counters("quarantined_files", "Files written to quarantine/, by reason.", "reason", by_reason)
        text = "Acknowledged events that the journal knows and that no file held at the start."
        yield _counter("events_missing", text, writer.missing_events)
        text = "Revoked MEPs whose events are or may be in a finished file."
        yield _counter("revoked_meps_out_of_reach", text, writer.out_of_reach_meps)
        yield _counter(
            "journal_damage", "Places where the journal was not readable at the start.", writer.journal_damage
        )
        text = "Starts after which the machine had been down and the session before had not ended in order."
        yield _counter("power_cuts", text, writer.power_cuts)
        text = "Attempts to write a file of histograms."
        yield _counters("histograms_saved", text, "outcome", writer.histogram_files.items())
        free = "Free bytes of the file system of output.directory; NaN if they cannot be read."
        yield _gauge("output_free_bytes", free, state.output_free_bytes)


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


def _counter(name: str, text: str, value: float) -> Metric:
    return CounterMetricFamily(PREFIX + name, text, value=value)


def _gauge(name: str, text: str, value: float) -> Metric:
    return GaugeMetricFamily(PREFIX + name, text, value=float(value))


def _counters(name: str, text: str, label: str, values: Iterable[tuple[str, float]]) -> Metric:
    family = CounterMetricFamily(PREFIX + name, text, labels=[label])
    for key, value in values:
        family.add_metric([str(key)], value)
    return family


def _gauges(name: str, text: str, label: str, values: Iterable[tuple[str, float]]) -> Metric:
    family = GaugeMetricFamily(PREFIX + name, text, labels=[label])
    for key, value in values:
        family.add_metric([str(key)], float(value))
    return family


def _with_buckets(family: HistogramMetricFamily, labels: list[str], histogram: Histogram) -> Metric:
    counts = tuple(histogram.counts)
    buckets, below = [], 0
    for bound, count in zip((*histogram.bounds, float("inf")), counts, strict=True):
        below += count
        buckets.append((str(bound) if bound != float("inf") else "+Inf", below))
    family.add_metric(labels, buckets, histogram.total)
    return family
