"""The series that a node shows in a fault, as they were scraped: `python -m tests.alerts --record` writes them.

test_held_faults replays them at their real speed and holds the fault; a run of `make alerts` is scaled.
"""

from __future__ import annotations

import json
import re
import threading
import time
from functools import cache
from pathlib import Path
from typing import TYPE_CHECKING, Any

import yaml

from tests.alerts.scenarios import Scenario

if TYPE_CHECKING:
    from tests.alerts.monitoring import Monitoring

RULES = Path(__file__).resolve().parents[2] / "deploy" / "prometheus"
RECORDED = Path(__file__).with_name("recorded_faults.json")
STEP_SECONDS = 5
GAP_STEPS = 5
INSTANCE, FILESYSTEM = "a:9105", "/dev/md0@3f2a77c1"
_METRIC = re.compile(r"\b(?:hltnode_\w+|up|process_start_time_seconds)\b(?!:)")
_RECORDED_RULE = re.compile(r"\b[a-z_]+:hltnode_[\w:]+")


@cache
def _rules() -> list[dict[str, Any]]:
    # PyYAML needs 0.2 s for them, and the tests ask for each alert.
    return [
        rule
        for name in ("recording.yml", "alerts.yml")
        for group in yaml.safe_load((RULES / name).read_text())["groups"]
        for rule in group["rules"]
    ]


def metrics_of(alert: str) -> set[str]:
    """The metrics that the rule of an alert reads, also through recording rules."""
    rules = _rules()
    texts = [rule["expr"] for rule in rules if rule.get("alert") == alert]
    recorded: set[str] = set()
    while fresh := {name for text in texts for name in _RECORDED_RULE.findall(text)} - recorded:
        recorded |= fresh
        texts += [rule["expr"] for rule in rules if rule.get("record") in fresh]
    return {name for text in texts for name in _METRIC.findall(_RECORDED_RULE.sub("", text))}


def at_steps(samples: list[tuple[float, float]], end: float, steps: int) -> list[float | None]:
    """The values at equal steps before the end; None where no sample is younger than a step: the series was stale.

    A short gap is one of a busy machine: the value before it stays.
    """
    values: list[float | None] = []
    for step in range(steps, -1, -1):
        at = end - step * STEP_SECONDS
        known = [value for time_s, value in samples if at - STEP_SECONDS < time_s <= at]
        values.append(known[-1] if known else None)
    for place in range(1, len(values)):
        if values[place] is None and any(value is not None for value in values[place + 1 : place + GAP_STEPS]):
            values[place] = values[place - 1]
    return values


class Recording:
    """Takes the series of scenarios from Prometheus, which scrapes each second."""

    def __init__(self, monitoring: Monitoring) -> None:
        self._monitoring = monitoring
        # Scenarios end in several threads.
        self._lock = threading.Lock()

    def take(self, scenario: Scenario, instance: str, begin: float, fault: float) -> None:
        """Keep the series of a scenario until now. begin, fault: monotonic times of first scrape and fault."""
        assert scenario.alert is not None
        now = time.monotonic()
        steps = int((now - begin) / STEP_SECONDS)
        found = self._monitoring.samples(instance, metrics_of(scenario.alert), now - begin + STEP_SECONDS)
        end = max(at for series in found for at, _ in series["values"])
        series: dict[str, list[float | None]] = {}
        for each in found:
            labels = {**each["metric"], "instance": INSTANCE}
            name = labels.pop("__name__")
            if "filesystem" in labels:
                labels["filesystem"] = FILESYSTEM
            text = ", ".join(f"{label}={json.dumps(value)}" for label, value in sorted(labels.items()))
            samples = [(at, float(value)) for at, value in each["values"]]
            values = at_steps(samples, end, steps)
            series[f"{name}{{{text}}}"] = values
        taken = {
            "alert": scenario.alert,
            "how": scenario.how,
            "fault_step": max(0, steps - int((now - fault) / STEP_SECONDS)),
            "series": dict(sorted(series.items())),
        }
        with self._lock:
            self._write(taken)

    @staticmethod
    def _write(taken: dict[str, Any]) -> None:
        """Replace a recorded fault by a new one; those of other scenarios stay."""
        kept = {(each["alert"], each["how"]): each for each in (recorded_faults() if RECORDED.exists() else [])}
        kept[taken["alert"], taken["how"]] = taken
        lines = [json.dumps(_packed(each), ensure_ascii=False) for _, each in sorted(kept.items())]
        RECORDED.write_text("[\n" + ",\n".join(lines) + "\n]\n", encoding="utf-8")


def _packed(fault: dict[str, Any]) -> dict[str, Any]:
    return {**fault, "series": {name: _runs(values) for name, values in fault["series"].items()}}


def _runs(values: list[float | None]) -> list[list[float | None]]:
    """Value and number of equal values in sequence."""
    runs: list[list[float | None]] = []
    for value in values:
        if runs and runs[-1][0] == value:
            runs[-1][1] = (runs[-1][1] or 0) + 1
        else:
            runs.append([value, 1])
    return runs


def recorded_faults() -> list[dict[str, Any]]:
    """Each recorded fault: alert, how, the step at which it began, and the values of each series; None: no sample."""
    faults: list[dict[str, Any]] = json.loads(RECORDED.read_text(encoding="utf-8"))
    return [
        {
            **fault,
            "series": {name: [value for value, n in runs for _ in range(n)] for name, runs in fault["series"].items()},
        }
        for fault in faults
    ]
