"""An alert stands while its fault is held: ten minutes of the series that a node showed in the fault, at real speed."""

from __future__ import annotations

import math
import subprocess
from itertools import cycle, pairwise
from pathlib import Path
from typing import Any

import pytest
import yaml

from tests.alerts.recording import FILESYSTEM, INSTANCE, STEP_SECONDS, metrics_of, recorded_faults
from tests.alerts.scaled import seconds
from tests.alerts.scenarios import UNIT_TESTED

ROOT = Path(__file__).resolve().parents[2]
RULES = ROOT / "deploy" / "prometheus"
HELD_SECONDS = 600
# The fault goes on as in its last recorded seconds.
REPEATED_STEPS = 6
NOT_PROVOKED: dict[str, dict[str, list[float | None]]] = {
    "HltnodeLossUnaccounted": {
        'hltnode_accounting_broken_total{instance="a:9105"}': [0, 0, 1, 1],
    },
    "HltnodeErrorContained": {
        'hltnode_exceptions_total{instance="a:9105", where="loop"}': [0, 0, 1, 1],
    },
    "HltnodeLogLinesLost": {
        'hltnode_log_lines_lost_total{instance="a:9105"}': [0, 0, 3, 3],
        'hltnode_log_fails{instance="a:9105"}': [0, 0, 1, 1],
    },
    "HltnodeRevokedOutOfReach": {
        'hltnode_revoked_meps_out_of_reach_total{instance="a:9105"}': [0, 0, 7, 7],
    },
    "HltnodeSlicesDropped": {
        'hltnode_slices_dropped_total{instance="a:9105", rule="thin"}': [0, 0, 5, 10],
    },
    "HltnodeWindowFaults": {
        'hltnode_window_faults_total{instance="a:9105", fault="hit_outside"}': [0, 0, 30, 60],
    },
    "HltnodeCombinerSilent": {
        'hltnode_combiner_silent_seconds{instance="a:9105"}': [0, 0, 15, 30],
    },
    "HltnodeHeldMemoryHigh": {
        'hltnode_held_bytes{instance="a:9105"}': [0, 0, 95, 99],
        'hltnode_held_bytes_limit{instance="a:9105"}': [100, 100, 100, 100],
        'hltnode_combiner_silent_seconds{instance="a:9105"}': [0, 0, 1, 1],
    },
    "HltnodeSlicesWithoutAnswer": {
        'hltnode_held_slices_left_total{instance="a:9105", end="timeout"}': [0, 0, 5, 10],
        'hltnode_combiner_silent_seconds{instance="a:9105"}': [0, 0, 1, 1],
    },
    "HltnodeCombinerNodeLost": {
        'hltnode_combiner_node_lost{instance="a:9105", node="one"}': [0, 0, 1, 1],
    },
    "HltnodeGpuSlowedDown": {
        'hltnode_gpu_throttled{instance="a:9105", reason="thermal"}': [0, 0, 1, 1, 1, 0, 1, 1, 1],
    },
    "HltnodeGpuMemoryErrors": {
        'hltnode_gpu_uncorrected_memory_errors_total{instance="a:9105"}': [0, 0, 1, 1],
    },
}
"""Series of the faults that no scenario provokes, in steps; the first two are before the fault."""
NOT_RECORDED: dict[str, dict[str, list[float | None]]] = {
    "HltnodeRestartLoop": {
        'process_start_time_seconds{instance="a:9105", job="hltnode"}': [100, 100, 105, 105, 110, 110, 115, 115],
    },
    "HltnodeStartHangs": {
        'hltnode_run_state{instance="a:9105", state="configured"}': [0, 0, 1, 1],
    },
    "HltnodeUnhealthy": {
        'hltnode_healthy{instance="a:9105"}': [1, 1, 0, 0],
        'hltnode_condition{instance="a:9105", condition="disk"}': [1, 1, 1, 1],
    },
    "HltnodeSourceSilent": {
        'hltnode_sources_silent{instance="a:9105", feeder="connected"}': [0, 0, 2, 2],
        'hltnode_sources_silent{instance="a:9105", feeder="lost"}': [0, 0, 0, 0],
    },
    "HltnodeNoInput": {
        'hltnode_run_active{instance="a:9105"}': [1, 1],
        'hltnode_run_state{instance="a:9105", state="running"}': [1, 1],
        'hltnode_credits_outstanding{instance="a:9105"}': [9, 9],
        'hltnode_feeders_lost{instance="a:9105"}': [0, 0],
        'hltnode_fragments_received_total{instance="a:9105"}': [0, 1500, 1500, 1500, 1500, 1500, 1500, 1500],
    },
    "HltnodeIncompleteRatioHigh": {
        'hltnode_meps_closed_total{instance="a:9105", reason="complete"}': [0, 0, 40, 80, 120, 160],
        'hltnode_meps_closed_total{instance="a:9105", reason="overtaken"}': [0, 0, 4, 8, 12, 16],
    },
    "HltnodeFragmentsLate": {
        'hltnode_fragments_received_total{instance="a:9105"}': [0, 0, 200, 400, 600, 800],
        'hltnode_fragments_rejected_total{instance="a:9105", reason="late"}': [0, 0, 50, 100, 150, 200],
    },
    "HltnodeRevocationRefused": {
        'hltnode_control_messages_refused_total{instance="a:9105", reason="not_permitted"}': [0, 0, 5, 10, 15, 20],
    },
    "HltnodeLatencyP99High": {
        'hltnode_end_to_end_seconds_bucket{instance="a:9105", le="1.0"}': [0, 0, 0, 0, 0, 0],
        'hltnode_end_to_end_seconds_bucket{instance="a:9105", le="2.5"}': [0, 0, 3, 6, 9, 12],
        'hltnode_end_to_end_seconds_bucket{instance="a:9105", le="+Inf"}': [0, 0, 3, 6, 9, 12],
    },
    "HltnodeMepsNotProcessed": {
        'hltnode_meps_not_processed_total{instance="a:9105"}': [0, None, 1, 1],
    },
    "HltnodeEventsCut": {
        'hltnode_events_flagged_total{instance="a:9105", flag="global_event_cut"}': [0, 0, 40, 80, 120, 160],
        'hltnode_events_processed_total{instance="a:9105"}': [0, 0, 40, 80, 120, 160],
    },
    "HltnodeDetectorMissing": {
        'hltnode_events_flagged_total{instance="a:9105", flag="missing_detector"}': [0, 0, 40, 80, 120, 160],
        'hltnode_events_processed_total{instance="a:9105"}': [0, 0, 40, 80, 120, 160],
    },
    "HltnodeEventsTooLarge": {
        'hltnode_events_flagged_total{instance="a:9105", flag="too_many_clusters"}': [0, 0, 40, 80, 120, 160],
        'hltnode_events_processed_total{instance="a:9105"}': [0, 0, 40, 80, 120, 160],
    },
    "HltnodeDetectorConditionOff": {
        'hltnode_detector_condition_measured{instance="a:9105", quantity="beam_x"}': [0.05, 0.05, 1.0, 1.0],
        'hltnode_detector_condition_configured{instance="a:9105", quantity="beam_x"}': [0.05, 0.05, 0.05, 0.05],
        'hltnode_detector_condition_tolerance{instance="a:9105", quantity="beam_x"}': [0.1, 0.1, 0.1, 0.1],
        'hltnode_detector_condition_values_total{instance="a:9105", quantity="beam_x"}': [
            0,
            0,
            4000,
            8000,
            12000,
            16000,
        ],
    },
    "HltnodeChannelsOff": {
        'hltnode_channel_groups_off{instance="a:9105", kind="ASIC", finding="dead"}': [0, 0, 1, 1],
        'hltnode_channel_hits_total{instance="a:9105", kind="ASIC"}': [0, 0, 4000, 8000, 12000, 16000],
    },
    "HltnodeNoPrimaryVertices": {
        'hltnode_histogram_bucket{instance="a:9105", histogram="has_pv", le="0.5"}': [0, 0, 40, 80, 120, 160],
        'hltnode_histogram_bucket{instance="a:9105", histogram="has_pv", le="+Inf"}': [0, 0, 40, 80, 120, 160],
    },
    "HltnodeDiskRefuses": {
        'hltnode_condition{instance="a:9105", condition="disk"}': [1, 1, 0, 0],
        'hltnode_output_free_bytes{instance="a:9105", filesystem="/dev/md0@3f2a77c1"}': [0.0, 0.0, 0.0, 0.0],
    },
    "HltnodeConsumerStalled": {
        'hltnode_condition{instance="a:9105", condition="outputs"}': [1, 1, 0, 0],
    },
    "HltnodeOutputSpaceLow": {
        'hltnode_output_free_bytes{instance="a:9105", filesystem="/dev/md0@3f2a77c1"}': [
            20000000000.0,
            20000000000.0,
            5000000000.0,
            5000000000.0,
        ],
    },
    "HltnodeEventsDropped": {
        'hltnode_events_dropped_total{instance="a:9105", stream="accepted"}': [0, 0, 64, 128, 192, 256],
    },
    "HltnodeDecisionDrops": {
        'hltnode_decisions_dropped_total{instance="a:9105", reason="slow_subscriber"}': [0, 0, 64, 128, 192, 256],
    },
    "HltnodeEventsQuarantined": {
        'hltnode_quarantined_events_total{instance="a:9105", reason="damaged"}': [0, None, 8, 8],
    },
    "HltnodeEventsMissing": {
        'hltnode_events_missing_total{instance="a:9105"}': [0, None, 8, 8],
    },
    "HltnodeJournalDamaged": {
        'hltnode_journal_damage_total{instance="a:9105"}': [0, None, 1, 1],
    },
    "HltnodePowerCut": {
        'hltnode_power_cuts_total{instance="a:9105"}': [0, None, 1, 1],
    },
    "HltnodeReloadRefused": {
        'hltnode_last_reload_successful{instance="a:9105"}': [1, 1, 0, 0],
    },
    "HltnodeLoginsRefused": {
        'hltnode_login_failures_total{instance="a:9105", reason="no_token", socket="http"}': [0, 0, 5, 10, 15, 20],
    },
    "HltnodeConnectionsRefused": {
        'hltnode_connections_refused_total{instance="a:9105", reason="address_full", socket="data"}': [
            0,
            0,
            12,
            24,
            36,
            48,
        ],
    },
    "HltnodeAddressesRefused": {
        'hltnode_address_refusals_total{instance="a:9105"}': [0, 0, 1, 1, 1, 2, 2, 2],
        'hltnode_refuses_unknown_addresses{instance="a:9105"}': [0, 0],
    },
}
"""The same for alerts whose scenario has not been recorded yet: `python -m tests.alerts --record NAME`."""
# Alerts of half an hour, which would triple the time of promtool: the tests in deploy/prometheus/tests hold them.
OF_HALF_AN_HOUR = {"HltnodeOutputFullSoon", "HltnodeRunKept"}


def faults() -> list[dict[str, Any]]:
    recorded = recorded_faults()
    missing = set(NOT_PROVOKED | NOT_RECORDED) - {fault["alert"] for fault in recorded}
    by_hand = [
        {"alert": name, "how": "by hand", "fault_step": 2, "series": of}
        for name, of in (NOT_PROVOKED | NOT_RECORDED).items()
        if name in missing
    ]
    return [fault for fault in (*recorded, *by_hand) if fault["alert"] not in OF_HALF_AN_HOUR]


def delay_of(alert: str) -> float:
    """The longest time until the alert fires: its `for`, and five minutes of a window."""
    groups = yaml.safe_load((RULES / "alerts.yml").read_text())["groups"]
    [rule] = [rule for group in groups for rule in group["rules"] if rule.get("alert") == alert]
    return seconds(rule.get("for", "0s")) + seconds("5m")


def held(name: str, values: list[float | None], steps: int, fault_step: int = 0) -> list[float | None]:
    """The values until the given step: gauges repeat their last values, counters and times their last increments."""
    last = values[max(fault_step, len(values) - REPEATED_STEPS) :]
    grows = name.split("{")[0].endswith(("_total", "_bucket", "_count", "_sum", "_time_seconds"))
    if None in last or not grows:
        more = [value for value, _ in zip(cycle(last), range(steps - len(values)), strict=False)]
        return [*values, *more]
    known = [value for value in last if value is not None]
    # A session that starts anew begins with 0.
    increments = [max(0.0, after - before) for before, after in pairwise(known)]
    found = [*values]
    for increment, _ in zip(cycle(increments), range(steps - len(values)), strict=False):
        assert found[-1] is not None
        found.append(found[-1] + increment)
    return found


def promtool_values(values: list[float | None]) -> str:
    """A series as promtool reads it; a series that is no longer scraped becomes stale."""
    words: list[str] = []
    for before, value in zip([None, *values], values, strict=False):
        if value is None:
            words.append("_" if before is None else "stale")
        else:
            words.append("NaN" if math.isnan(value) else repr(value))
    return " ".join(words)


def unit_test(held_faults: list[dict[str, Any]]) -> dict[str, Any]:
    """One test of promtool with a node for each fault: its alert fires in each of the ten minutes after its delay.

    One test with all nodes takes a tenth of the time of one test for each fault.
    """
    ends = [fault["fault_step"] * STEP_SECONDS + int(delay_of(fault["alert"])) + HELD_SECONDS for fault in held_faults]
    steps = max(ends) // STEP_SECONDS + 1
    series, checks = [], []
    for number, (fault, end) in enumerate(zip(held_faults, ends, strict=True)):
        names = {INSTANCE: f"{number}:9105", FILESYSTEM: f"/dev/md{number}"}
        for name, values in fault["series"].items():
            of_node = name.replace(INSTANCE, names[INSTANCE]).replace(FILESYSTEM, names[FILESYSTEM])
            continued = held(name, values, steps, fault["fault_step"])
            series.append({"series": of_node, "values": promtool_values(continued)})
        firing = f'ALERTS{{alertname="{fault["alert"]}", alertstate="firing", '
        node, disk = f'instance="{names[INSTANCE]}"}}', f'filesystem="{names[FILESYSTEM]}"}}'
        fires = f"count({firing}{node} or {firing}{disk}) > bool 0 or vector(0)"
        before = max(0, fault["fault_step"] - 1) * STEP_SECONDS
        checks += [
            expected(f"min_over_time(({fires})[{HELD_SECONDS}s:15s])", end, 1),
            expected(f"max_over_time(({fires})[{HELD_SECONDS}s:15s])", before, 0),
        ]
    return {"interval": f"{STEP_SECONDS}s", "input_series": series, "promql_expr_test": checks}


def expected(expression: str, at: int, value: int) -> dict[str, Any]:
    """A check of promtool."""
    return {"expr": expression, "eval_time": f"{at}s", "exp_samples": [{"labels": "{}", "value": value}]}


def test_every_alert_has_a_held_fault_with_the_metrics_of_its_rule() -> None:
    rules = [rule for group in yaml.safe_load((RULES / "alerts.yml").read_text())["groups"] for rule in group["rules"]]
    assert set(NOT_PROVOKED) == set(UNIT_TESTED)
    assert {fault["alert"] for fault in faults()} == {rule["alert"] for rule in rules} - OF_HALF_AN_HOUR
    for fault in faults():
        metrics = {name.split("{")[0] for name in fault["series"]}
        assert metrics, fault["how"]
        assert metrics <= metrics_of(fault["alert"])


def test_every_alert_stands_for_ten_minutes_of_its_fault(promtool: str, tmp_path: Path) -> None:
    content = {
        "rule_files": [str(RULES / "recording.yml"), str(RULES / "alerts.yml")],
        "evaluation_interval": "15s",
        "tests": [unit_test(faults())],
    }
    path = tmp_path / "held.yml"
    path.write_text(yaml.safe_dump(content, width=1 << 20))
    checked = subprocess.run(
        [promtool, "test", "rules", path], capture_output=True, text=True, check=False, timeout=120
    )
    assert checked.returncode == 0, checked.stdout + checked.stderr


@pytest.mark.parametrize(
    ("values", "expected"),
    [
        ([1.0, 2.0], [1.0, 2.0, 3.0, 4.0]),
        ([5.0, 7.0, 0.0, 1.0], [5.0, 7.0, 0.0, 1.0, 3.0, 3.0]),
        ([1.0, None], [1.0, None, 1.0, None]),
    ],
)
def test_a_held_counter_goes_on_as_it_was(values: list[float | None], expected: list[float | None]) -> None:
    assert held("x_total{}", values, len(expected)) == expected


def test_a_held_gauge_repeats_its_values_and_a_series_that_ends_is_stale() -> None:
    assert held("x{}", [0.0, 1.0], 5) == [0.0, 1.0, 0.0, 1.0, 0.0]
    assert promtool_values([None, 1.0, None, None, math.nan]) == "_ 1.0 stale _ NaN"
