"""An alert stands while its fault is held: ten minutes of the series that a node showed in the fault, at real speed."""

from __future__ import annotations

import math
import subprocess
from itertools import cycle
from pathlib import Path
from typing import Any

import pytest
import yaml

from tests.alerts.recording import STEP_SECONDS, metrics_of, recorded_faults
from tests.alerts.scaled import seconds
from tests.alerts.scenarios import UNIT_TESTED

ROOT = Path(__file__).resolve().parents[2]
RULES = ROOT / "deploy" / "prometheus"
HELD_SECONDS = 600
# The fault goes on as in its last recorded seconds.
REPEATED_STEPS = 6
NOT_PROVOKED: dict[str, dict[str, list[float | None]]] = {
    "HltnodeLossUnaccounted": {'hltnode_accounting_broken_total{instance="a:9105"}': [0, 0, 1, 1]},
    "HltnodeErrorContained": {'hltnode_exceptions_total{instance="a:9105", where="loop"}': [0, 0, 1, 1]},
    "HltnodeLogLinesLost": {
        'hltnode_log_lines_lost_total{instance="a:9105"}': [0, 0, 3, 3],
        'hltnode_log_fails{instance="a:9105"}': [0, 0, 1, 1],
    },
    "HltnodeRevokedOutOfReach": {'hltnode_revoked_meps_out_of_reach_total{instance="a:9105"}': [0, 0, 7, 7]},
    "HltnodeGpuSlowedDown": {'hltnode_gpu_throttled{instance="a:9105", reason="thermal"}': [0, 0, 1, 1, 1, 0, 1, 1, 1]},
    "HltnodeGpuMemoryErrors": {'hltnode_gpu_uncorrected_memory_errors_total{instance="a:9105"}': [0, 0, 1, 1]},
}
"""Series of the faults that no scenario provokes, in steps; the first two are before the fault."""


def faults() -> list[dict[str, Any]]:
    by_hand = [{"alert": name, "how": "by hand", "fault_step": 2, "series": of} for name, of in NOT_PROVOKED.items()]
    return [*recorded_faults(), *by_hand]


def delay_of(alert: str) -> float:
    """The longest time until the alert fires: its `for`, and five minutes of a window."""
    groups = yaml.safe_load((RULES / "alerts.yml").read_text())["groups"]
    [rule] = [rule for group in groups for rule in group["rules"] if rule.get("alert") == alert]
    return seconds(rule.get("for", "0s")) + seconds("5m")


def held(name: str, values: list[float | None], steps: int) -> list[float | None]:
    """The values until the given step: gauges repeat their last values, counters and times their last increments."""
    last = values[-REPEATED_STEPS:]
    grows = name.split("{")[0].endswith(("_total", "_bucket", "_count", "_sum", "_time_seconds"))
    if None in last or not grows:
        more = [value for value, _ in zip(cycle(last), range(steps - len(values)), strict=False)]
        return [*values, *more]
    known = [value for value in last if value is not None]
    # A session that starts anew begins with 0.
    increments = [max(0.0, after - before) for before, after in zip(known, known[1:], strict=False)]
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


def unit_test(fault: dict[str, Any]) -> dict[str, Any]:
    """The test of promtool that the alert fires in each of the ten minutes after its delay."""
    alert = fault["alert"]
    end = fault["fault_step"] * STEP_SECONDS + int(delay_of(alert)) + HELD_SECONDS
    fires = f'count(ALERTS{{alertname="{alert}", alertstate="firing"}}) > bool 0 or vector(0)'
    return {
        "name": f"{alert}: {fault['how']}",
        "interval": f"{STEP_SECONDS}s",
        "input_series": [
            {"series": name, "values": promtool_values(held(name, values, end // STEP_SECONDS + 1))}
            for name, values in fault["series"].items()
        ],
        "promql_expr_test": [
            {
                "expr": f"min_over_time(({fires})[{HELD_SECONDS}s:{STEP_SECONDS}s])",
                "eval_time": f"{end}s",
                "exp_samples": [{"labels": "{}", "value": 1}],
            },
            {
                "expr": f"max_over_time(({fires})[{HELD_SECONDS}s:{STEP_SECONDS}s])",
                "eval_time": f"{max(0, fault['fault_step'] - 1) * STEP_SECONDS}s",
                "exp_samples": [{"labels": "{}", "value": 0}],
            },
        ],
    }


def test_every_alert_has_a_held_fault_with_the_metrics_of_its_rule() -> None:
    rules = [rule for group in yaml.safe_load((RULES / "alerts.yml").read_text())["groups"] for rule in group["rules"]]
    assert set(NOT_PROVOKED) == set(UNIT_TESTED)
    assert {fault["alert"] for fault in faults()} == {rule["alert"] for rule in rules}
    for fault in faults():
        metrics = {name.split("{")[0] for name in fault["series"]}
        assert metrics, fault["how"]
        assert metrics <= metrics_of(fault["alert"])


def test_every_alert_stands_for_ten_minutes_of_its_fault(promtool: str, tmp_path: Path) -> None:
    content = {
        "rule_files": [str(RULES / "recording.yml"), str(RULES / "alerts.yml")],
        "evaluation_interval": "15s",
        "tests": [unit_test(fault) for fault in faults()],
    }
    path = tmp_path / "held.yml"
    path.write_text(yaml.safe_dump(content, width=1 << 20))
    checked = subprocess.run([promtool, "test", "rules", path], capture_output=True, text=True, check=False, timeout=120)
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
