"""`make alerts` uses the rules of a farm with divided durations, and provokes each alert."""

import re
from pathlib import Path

import pytest
import yaml

from hltnode.daemon.configuration.loading import load_config
from tests.alerts.__main__ import PARTS
from tests.alerts.monitoring import FILES
from tests.alerts.scaled import SLOWER, divisor_of, scaled, seconds
from tests.alerts.scenarios import ANSWERS_ARE_NOT_SCALED, SCENARIOS, UNIT_TESTED
from tests.alerts.site import Site

DURATION = re.compile(
    r"(?:\[|for: |keep_firing_for: |offset |group_wait: |group_interval: |repeat_interval: )(\d+)(ms|[smh])\b"
)
MS = {"ms": 1, "s": 1000, "m": 60_000, "h": 3_600_000}


def durations_ms(text: str) -> list[int]:
    return [int(n) * MS[unit] for n, unit in DURATION.findall(text)]


@pytest.mark.parametrize("name", ["recording.yml", "alerts.yml", "alertmanager.yml"])
def test_every_duration_is_divided_and_nothing_else_changes(name: str) -> None:
    text = (FILES / name).read_text()
    small = scaled(text, 20)
    assert durations_ms(text)
    rules = re.split(r"(?m)^(?= *- alert: )", text)
    divisors = [divisor_of(rule, 20) for rule in rules]
    expected = [d // divisor for rule, divisor in zip(rules, divisors, strict=True) for d in durations_ms(rule)]
    assert durations_ms(small) == expected
    assert sorted(divisors)[:2] == ([1, 5] if name == "alerts.yml" else [20] * min(len(divisors), 2))

    def without_durations(of: str) -> str:
        return re.sub(r"(predict_linear\([^,]+, )\d+", r"\1", DURATION.sub("", of))

    assert without_durations(small) == without_durations(text)


def test_the_node_answers_and_starts_as_on_a_farm() -> None:
    small = yaml.safe_load(scaled((FILES / "alerts.yml").read_text(), 20))
    rules = {rule["alert"]: rule for group in small["groups"] for rule in group["rules"]}
    assert set(SLOWER) <= set(rules)
    assert rules["HltnodeNodeDown"]["for"] == f"{ANSWERS_ARE_NOT_SCALED * 1000:.0f}ms"
    assert "[180000ms]" in rules["HltnodeRestartLoop"]["expr"]
    assert rules["HltnodeFeederLost"]["for"] == "750ms"


def test_the_horizon_of_a_forecast_is_a_duration_too() -> None:
    assert scaled("predict_linear(x[30m], 14400) < 10e9", 20) == "predict_linear(x[90000ms], 720) < 10e9"


def test_no_duration_of_a_rule_is_longer_than_what_make_alerts_waits_for() -> None:
    rules = [rule for group in yaml.safe_load((FILES / "alerts.yml").read_text())["groups"] for rule in group["rules"]]
    assert all(seconds(rule.get("for", "0s")) <= 1800 for rule in rules)


def test_every_alert_is_provoked_or_says_why_that_is_not_possible() -> None:
    assert len(PARTS) == len(list(Path(__file__).parent.glob("of_the_*.py")))
    rules = [rule for group in yaml.safe_load((FILES / "alerts.yml").read_text())["groups"] for rule in group["rules"]]
    provoked = {scenario.alert for scenario in SCENARIOS if scenario.alert is not None}
    assert provoked | set(UNIT_TESTED) == {rule["alert"] for rule in rules}
    assert not provoked & set(UNIT_TESTED)
    assert sum(scenario.alert is None for scenario in SCENARIOS) >= 5


def test_the_configuration_of_every_scenario_is_one_of_a_node(tmp_path: Path) -> None:
    for number, scenario in enumerate(SCENARIOS):
        load_config(Site(tmp_path / str(number), scenario.settings, events=scenario.events).config)
