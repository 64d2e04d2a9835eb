"""The collector against counters that were set by hand."""

from __future__ import annotations

import os
import subprocess

import numpy as np
import pytest
from prometheus_client.parser import text_string_to_metric_families

from hltnode.daemon.common.vocabulary import CloseReason, ErrorPlace, EventStream, SlotState, Stage, WriteErrorKind
from hltnode.daemon.monitoring.counters import Counters
from hltnode.daemon.monitoring.health import Condition, Health
from hltnode.daemon.monitoring.metrics.collector import BuildInfo, NodeCollector, render
from hltnode.daemon.monitoring.metrics.intake import SHOWN_FEEDERS
from hltnode.daemon.monitoring.node_state import NodeState
from hltnode.processing.framework.memory_plan import SlotMemory
from hltnode.protocol.errors import RejectReason
from hltnode.protocol.transport.run_control_messages import RunState

INFO = BuildInfo(version="0.1.0", node="n1", backend="cpu", chain="lhcb", tck="0x1234")
MEMORY = SlotMemory(device=3_000_000, pinned=1_000_000, thread=5_000, per_event=700)
NOW_NS = 10_000_000_000
WALL = 1_700_000_000.0

Sample = tuple[str, frozenset[tuple[str, str]]]


def make_health() -> Health:
    return Health(loop_tick_ns=NOW_NS, pipeline_tick_ns=NOW_NS, feeders_expected=2)


def make_collector(counters: Counters, health: Health, state: NodeState) -> NodeCollector:
    return NodeCollector(counters, health, INFO, state, MEMORY, health_ns=NOW_NS, monotonic_ns=NOW_NS, wall_s=WALL)


def scrape(counters: Counters, health: Health | None = None, state: NodeState | None = None) -> dict[Sample, float]:
    if health is None:
        health = make_health()
    text = render(make_collector(counters, health, state or NodeState())).decode()
    return {
        (sample.name, frozenset(sample.labels.items())): sample.value
        for family in text_string_to_metric_families(text)
        for sample in family.samples
    }


def key(name: str, /, **labels: str) -> Sample:
    return name, frozenset(labels.items())


def test_a_fresh_node_exports_every_known_label_value_as_zero() -> None:
    samples = scrape(Counters())
    for reason in RejectReason:
        assert samples[key("hltnode_fragments_rejected_total", reason=reason)] == 0
    for close in CloseReason:
        assert samples[key("hltnode_meps_closed_total", reason=close)] == 0
    for state in SlotState:
        assert samples[key("hltnode_slots", state=state)] == 0
    for stage in Stage:
        assert samples[key("hltnode_stage_seconds_count", stage=stage)] == 0
    for flag in ("bank_error", "overflow", "incomplete", "odin_error"):
        assert samples[key("hltnode_events_flagged_total", flag=flag)] == 0
    for stream in EventStream:
        assert samples[key("hltnode_events_written_total", stream=stream)] == 0
    for kind in WriteErrorKind:
        assert samples[key("hltnode_write_errors_total", kind=kind)] == 0
    assert samples[key("hltnode_decisions_dropped_total", reason="slow_subscriber")] == 0
    assert samples[key("hltnode_dead_time_seconds_total", reason="computing")] == 0


def test_exported_values_equal_the_counters() -> None:
    counters = Counters(fragments_received=11)
    counters.fragments_rejected[RejectReason.BAD_CRC] = 3
    counters.meps_closed[CloseReason.COMPLETE] = 4
    counters.writer.streams[EventStream.ACCEPTED].events = 9
    counters.count_exception(ErrorPlace.LOOP)
    samples = scrape(counters, state=NodeState(meps_open=1, fragments_in_build=2))
    assert samples[key("hltnode_fragments_received_total")] == 11
    assert samples[key("hltnode_fragments_in_build")] == 2
    assert samples[key("hltnode_fragments_rejected_total", reason="bad_crc")] == 3
    assert samples[key("hltnode_meps_closed_total", reason="complete")] == 4
    assert samples[key("hltnode_meps_open")] == 1
    assert samples[key("hltnode_events_written_total", stream="accepted")] == 9
    assert samples[key("hltnode_exceptions_total", where="loop")] == 1
    build = key("hltnode_build_info", version="0.1.0", node="n1", backend="cpu", chain="lhcb", tck="0x1234")
    assert samples[build] == 1


def test_the_exported_state_equals_the_state_of_the_node() -> None:
    counters = Counters()
    counters.expect_sources([1, 2, 3])
    state = NodeState(
        run_state=RunState.PAUSED,
        run=328614,
        feeders_connected=3,
        credits_outstanding=17,
        slots={SlotState.FREE: 2, SlotState.RUN: 1},
        run_active=True,
        sources=(1, 2, 3),
        lost_feeders=["west"],
        feeders_of_deserted_runs={5: ["east", "west"], 6: [""]},
        output_filesystem="/dev/md0@3f2a77c1",
        output_free_bytes=1e9,
        silent_sources=frozenset({2, 3}),
        sources_of_lost_feeders=frozenset({3}),
    )
    samples = scrape(counters, state=state)
    assert samples[key("hltnode_run_number")] == 328614
    assert samples[key("hltnode_run_state", state="paused")] == 1
    assert samples[key("hltnode_run_state", state="running")] == 0
    assert samples[key("hltnode_feeders_connected")] == 3
    assert samples[key("hltnode_credits_outstanding")] == 17
    assert samples[key("hltnode_slots", state="free")] == 2
    assert samples[key("hltnode_slots", state="run")] == 1
    assert samples[key("hltnode_source_silent", source="1")] == 0
    assert samples[key("hltnode_source_silent", source="2")] == 1
    assert samples[key("hltnode_sources_expected")] == 3
    assert samples[key("hltnode_sources_silent", feeder="connected")] == 1
    assert samples[key("hltnode_sources_silent", feeder="lost")] == 1
    assert samples[key("hltnode_feeders_lost")] == 1
    assert samples[key("hltnode_runs_deserted")] == 2
    lost = {(dict(labels)["run"], dict(labels)["name"]) for name, labels in samples if name == "hltnode_feeder_lost"}
    assert lost == {("328614", "west"), ("5", "east"), ("5", "west"), ("6", "unknown")}
    assert samples[key("hltnode_output_free_bytes", filesystem="/dev/md0@3f2a77c1")] == 1e9
    assert samples[key("hltnode_run_active")] == 1
    assert samples[key("hltnode_run_info", run="328614", state="paused", version="0.1.0", tck="0x1234")] == 1


@pytest.mark.parametrize("active", [True, False])
def test_only_sources_of_the_last_run_have_series_and_they_are_expected_while_it_is_active(*, active: bool) -> None:
    counters = Counters()
    counters.expect_sources([1, 2])
    for sources in ((2,), ()):
        found = scrape(counters, state=NodeState(run_active=active, sources=sources))
        assert {int(dict(labels)["source"]) for _, labels in found if "source" in dict(labels)} == set(sources)
        assert found[key("hltnode_sources_expected")] == active * len(sources)


def test_many_lost_feeders_have_few_series() -> None:
    runs = {run: [f"feeder {n}" for n in range(100)] for run in range(100)}
    samples = scrape(Counters(), state=NodeState(feeders_of_deserted_runs=runs))
    assert samples[key("hltnode_runs_deserted")] == 100
    assert sum(name == "hltnode_feeder_lost" for name, _ in samples) == SHOWN_FEEDERS


def test_the_memory_of_a_slot_is_exported_by_kind() -> None:
    samples = scrape(Counters())
    found = {kind: samples[key("hltnode_slot_bytes", memory=kind)] for kind in ("device", "pinned", "thread")}
    assert found == {"device": 3_000_000, "pinned": 1_000_000, "thread": 5_000}
    assert samples[key("hltnode_plan_bytes_per_event")] == 700


def test_a_line_is_exported_by_its_name() -> None:
    counters = Counters()
    counters.set_lines(["passthrough", "micro_bias"])
    counters.count_batch(np.ones(2, np.uint8), np.array([[2], [3]], np.uint32), np.zeros(2, np.uint32))
    samples = scrape(counters)
    assert samples[key("hltnode_line_accepts_total", line="passthrough")] == 1
    assert samples[key("hltnode_line_accepts_total", line="micro_bias")] == 2
    assert samples[key("hltnode_events_processed_total")] == 2


def test_a_collection_of_the_chain_is_exported_by_its_name() -> None:
    counters = Counters()
    counters.set_collections(["hits"])
    counters.count_objects({"hits": 42})
    assert scrape(counters)[key("hltnode_objects_total", collection="hits")] == 42


def test_a_source_is_exported_with_the_unix_time_of_its_last_fragment() -> None:
    counters = Counters()
    counters.expect_sources([2048, 4096])
    counters.sources[2048].fragments = 7
    counters.sources[2048].last_seen_ns = NOW_NS - 1_500_000_000
    counters.sources[4096].missing = 2
    samples = scrape(counters, state=NodeState(sources=(2048, 4096)))
    assert samples[key("hltnode_source_fragments_received_total", source="2048")] == 7
    assert samples[key("hltnode_source_last_fragment_timestamp_seconds", source="2048")] == WALL - 1.5
    assert key("hltnode_source_last_fragment_timestamp_seconds", source="4096") not in samples
    assert samples[key("hltnode_source_missing_total", source="4096")] == 2


def test_histograms_are_cumulative_and_end_with_their_count() -> None:
    counters = Counters()
    for seconds in (0.00004, 0.0003, 0.0004, 2.0):
        counters.stages[Stage.KERNELS].observe(seconds)
    samples = scrape(counters)
    assert samples[key("hltnode_stage_seconds_bucket", stage="kernels", le="5e-05")] == 1
    assert samples[key("hltnode_stage_seconds_bucket", stage="kernels", le="0.0005")] == 3
    assert samples[key("hltnode_stage_seconds_bucket", stage="kernels", le="1.0")] == 3
    assert samples[key("hltnode_stage_seconds_bucket", stage="kernels", le="+Inf")] == 4
    assert samples[key("hltnode_stage_seconds_count", stage="kernels")] == 4
    assert samples[key("hltnode_stage_seconds_sum", stage="kernels")] == pytest.approx(2.00074)


def test_conditions_and_readiness_follow_the_health() -> None:
    health = Health(
        loop_tick_ns=NOW_NS, pipeline_tick_ns=NOW_NS, feeders_expected=1, feeders_connected=1, configured=True
    )
    samples = scrape(Counters(), health)
    assert samples[key("hltnode_ready")] == 0
    assert samples[key("hltnode_healthy")] == 1
    assert samples[key("hltnode_condition", condition="warmed_up")] == 0
    assert all(samples[key("hltnode_condition", condition=c)] == 1 for c in Condition if c is not Condition.WARMED_UP)
    health.warmed_up = True
    assert scrape(Counters(), health)[key("hltnode_ready")] == 1


def test_names_have_the_prefix_and_no_name_appears_twice() -> None:
    names = [family.name for family in make_collector(Counters(), make_health(), NodeState()).collect()]
    assert all(name.startswith("hltnode_") for name in names)
    assert len(set(names)) == len(names)


def test_the_process_is_exported_too() -> None:
    samples = scrape(Counters())
    assert samples[key("process_resident_memory_bytes")] > 0
    assert samples[key("process_start_time_seconds")] > 0


def test_promtool_accepts_the_metrics(promtool: str) -> None:
    counters = Counters()
    counters.expect_sources([1])
    counters.set_lines(["passthrough"])
    counters.count_exception(ErrorPlace.LOOP)
    text = render(make_collector(counters, make_health(), NodeState(sources=(1,), lost_feeders=["west"])))
    checked = subprocess.run([promtool, "check", "metrics"], input=text, capture_output=True, check=False, timeout=30)
    assert checked.returncode == 0, checked.stderr.decode() + os.linesep + checked.stdout.decode()


def counted_sources(n: int) -> Counters:
    """Counters of some sources that have delivered."""
    counters = Counters()
    counters.expect_sources(range(4096, 4096 + n))
    for source, of_source in counters.sources.items():
        of_source.fragments, of_source.bytes, of_source.last_seen_ns = source, source << 40, NOW_NS - source
    return counters


def test_the_lines_of_sources_equal_those_of_the_prometheus_client() -> None:
    collector = make_collector(
        counted_sources(3), make_health(), NodeState(sources=(4096, 4097, 4098), silent_sources=frozenset({4097}))
    )
    families = list(collector.of_sources())
    assert {family.name for family in families} == {
        f"hltnode_source_{name}"
        for name in (
            "fragments_received_total",
            "fragment_bytes_received_total",
            "missing_total",
            "late_total",
            "silent",
            "last_fragment_timestamp_seconds",
        )
    }
    for family in families:
        [parsed] = text_string_to_metric_families(family.render())
        expected = family.as_metric()
        assert (parsed.name, parsed.type, parsed.documentation) == (
            expected.name,
            expected.type,
            expected.documentation,
        )
        assert [sample[:3] for sample in parsed.samples] == [sample[:3] for sample in expected.samples]
