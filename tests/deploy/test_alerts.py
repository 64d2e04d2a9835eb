"""Alerts, their tests, their routes and the page with their remedies are consistent."""

from __future__ import annotations

import json
import re
import subprocess
from pathlib import Path
from typing import Any

import pytest

from hltnode.daemon.combiner.combiner import Combiner, CombinerAccess
from hltnode.daemon.combiner.combiner_metrics import CombinerCollector
from hltnode.daemon.combiner.seed_joiner import JoinRules
from hltnode.daemon.common.vocabulary import DeadTimeReason
from hltnode.daemon.monitoring.counters import Counters
from hltnode.daemon.monitoring.health import Health
from hltnode.daemon.monitoring.metrics.collector import BuildInfo, NodeCollector
from hltnode.daemon.monitoring.node_state import NodeState
from hltnode.processing.framework.memory_plan import SlotMemory

yaml = pytest.importorskip("yaml", reason="PyYAML is not installed")

ROOT = Path(__file__).resolve().parents[2]
PROMETHEUS = ROOT / "deploy" / "prometheus"
ALERTS = PROMETHEUS / "alerts.yml"
RECORDING = PROMETHEUS / "recording.yml"
PAGE = ROOT / "docs" / "how-to" / "respond-to-alerts.md"
DOCS_URL = "http://127.0.0.1:8000"
GRAFANA_URL = "http://127.0.0.1:3000"
EXTERNAL_LABELS = {"hltnode_docs_url", "hltnode_grafana_url"}
OF_A_FILE_SYSTEM = {"HltnodeDiskRefuses", "HltnodeOutputSpaceLow", "HltnodeOutputFullSoon"}
GOES_ON = {
    "HltnodeLogLinesLost",
    "HltnodeFeederRefused",
    "HltnodeRevocationRefused",
    "HltnodeEventsDropped",
    "HltnodeLoginsRefused",
    "HltnodeConnectionsRefused",
    "HltnodeAddressesRefused",
}
"""Alerts on what a peer or a disk repeats, or that have a gauge beside the counter."""
UNIT_TESTS = sorted((PROMETHEUS / "tests").glob("*.yml"))
FAMILY_SUFFIXES = {
    "counter": ["_total"],
    "info": ["_info"],
    "gauge": [""],
    "histogram": ["_bucket", "_count", "_sum", ""],
}


def run(*command: str | Path) -> subprocess.CompletedProcess[str]:
    return subprocess.run([str(part) for part in command], capture_output=True, text=True, check=False, timeout=600)


def rules_of(path: Path) -> list[dict[str, Any]]:
    return [rule for group in yaml.safe_load(path.read_text())["groups"] for rule in group["rules"]]


def alerts() -> dict[str, dict[str, Any]]:
    found = {rule["alert"]: rule for rule in rules_of(ALERTS)}
    assert len(found) > 30
    return found


def exported_names() -> set[str]:
    """Every name that a rule may use: families with their suffixes, recording rules, and labels of Prometheus."""
    collector = NodeCollector(
        Counters(),
        Health(loop_tick_ns=0, pipeline_tick_ns=0, feeders_expected=1),
        BuildInfo(version="", node="", backend="", chain="", tck=""),
        NodeState(),
        SlotMemory(0, 0, 0, 0),
        health_ns=0,
        monotonic_ns=0,
        wall_s=0.0,
    )
    combiner = CombinerCollector(Combiner(JoinRules(), CombinerAccess()))
    families = {
        family.name + suffix
        for of in (collector, combiner)
        for family in of.collect()
        for suffix in FAMILY_SUFFIXES[family.type]
    }
    return families | {rule["record"] for rule in rules_of(RECORDING)} | EXTERNAL_LABELS


def files_with_metric_names() -> list[Path]:
    boards = sorted((ROOT / "deploy" / "grafana" / "dashboards").glob("*.json"))
    return [*boards, ALERTS, RECORDING, *UNIT_TESTS, *sorted(ROOT.glob("docs/**/*.md"))]


@pytest.mark.parametrize("path", files_with_metric_names(), ids=lambda path: str(path.relative_to(ROOT)))
def test_every_metric_named_in_a_file_is_exported(path: Path) -> None:
    named = re.findall(r"\b(?:[a-z_]+:)?hltnode_[a-z][a-z0-9_:]*[a-z0-9]\b(?!_?\*)", path.read_text(encoding="utf-8"))
    assert set(named) <= exported_names() | names_of_the_c_library()


def names_of_the_c_library() -> set[str]:
    header = ROOT / "client" / "c" / "hltnode_client.h"
    target = f"{header.stem}::{header.stem}"
    return {header.stem, target, *re.findall(r"\bhltnode_[a-z_]+\b", header.read_text(encoding="utf-8"))}


def test_the_search_for_metric_names_finds_some() -> None:
    assert len(re.findall(r"\bhltnode_[a-z0-9_]+", ALERTS.read_text())) > 30


def test_the_alerts_pass_their_tests(promtool: str) -> None:
    checked = run(promtool, "test", "rules", *UNIT_TESTS)
    assert checked.returncode == 0, checked.stdout + checked.stderr


def test_the_prometheus_configuration_is_valid(promtool: str) -> None:
    checked = run(promtool, "check", "config", PROMETHEUS / "prometheus.yml")
    assert checked.returncode == 0, checked.stdout + checked.stderr


def test_the_example_of_alertmanager_is_valid(prometheus_programs: Path) -> None:
    checked = run(prometheus_programs / "amtool", "check-config", PROMETHEUS / "alertmanager.yml")
    assert checked.returncode == 0, checked.stdout + checked.stderr


def test_every_alert_has_a_unit_test_that_sees_it_fire_and_one_that_sees_it_not_fire() -> None:
    fires: set[str] = set()
    silent: set[str] = set()
    for path in UNIT_TESTS:
        for test in yaml.safe_load(path.read_text())["tests"]:
            for check in test.get("alert_rule_test", []):
                (fires if check["exp_alerts"] else silent).add(check["alertname"])
            # A check without alerts is a series of another node that must not alert.
            nodes = set(re.findall(r'instance="(\w):', str(test["input_series"])))
            silent |= {check["alertname"] for check in test.get("alert_rule_test", []) if len(nodes) > 1}
    assert fires == set(alerts())
    assert set(alerts()) <= silent


def test_the_page_has_a_section_and_a_row_for_every_alert_and_reason_of_dead_time_only() -> None:
    page = PAGE.read_text()
    sections = re.findall(r"(?m)^## (Hltnode\w+)$", page)
    assert sorted(sections) == sorted(alerts())
    assert sorted(re.findall(r"(?m)^### Dead time: (\w+)$", page)) == sorted(DeadTimeReason)
    rows = re.findall(r"(?m)^\| \[([^]]+)\]\(#([\w-]+)\) \| (\w+) \| [^|]+ \| [^|]+ \|$", page)
    severity = {name: rule["labels"]["severity"] for name, rule in alerts().items()}
    assert {name: of for name, anchor, of in rows if anchor == name.lower()} == severity
    reasons = {name for name, anchor, _ in rows if anchor == f"dead-time-{name.removeprefix('dead time, ')}"}
    assert reasons == {f"dead time, {reason}" for reason in DeadTimeReason}
    assert len(rows) == len(severity) + len(reasons)


def test_links_within_the_page_lead_to_its_sections() -> None:
    page = PAGE.read_text()
    anchors = {re.sub(r"[^\w -]", "", title).lower().replace(" ", "-") for title in re.findall(r"(?m)^##+ (.+)$", page)}
    linked = set(re.findall(r"\(#([\w-]+)\)", page))
    assert linked
    assert linked <= anchors


def test_every_alert_says_how_bad_it_is_and_leads_to_its_section() -> None:
    for name, rule in alerts().items():
        assert rule["labels"] == {"severity": rule["labels"]["severity"]}
        assert rule["labels"]["severity"] in {"critical", "warning", "info"}
        assert set(rule["annotations"]) == {"summary", "description", "runbook_url", "dashboard_url"}
        page, _, anchor = path_of(rule, "runbook_url", "hltnode_docs_url", DOCS_URL).partition("#")
        assert (ROOT / "docs" / page).with_suffix(".md") == PAGE
        assert anchor == name.lower()


def path_of(rule: dict[str, Any], annotation: str, label: str, default: str) -> str:
    """The part of an address behind its base, which an external label of Prometheus replaces."""
    begin = f"{{{{ or $externalLabels.{label} `{default}` }}}}/"
    address: str = rule["annotations"][annotation]
    assert address.startswith(begin)
    return address.removeprefix(begin)


def test_every_alert_leads_to_a_dashboard_of_grafana_with_the_node_chosen() -> None:
    boards = {
        board["uid"]: {variable["name"] for variable in board["templating"]["list"]}
        for board in map(json.loads, (path.read_text() for path in (ROOT / "deploy/grafana/dashboards").glob("*.json")))
    }
    compose = yaml.safe_load((ROOT / "docker" / "compose.yml").read_text())
    assert compose["services"]["grafana"]["ports"] == [GRAFANA_URL.removeprefix("http://") + ":3000"]
    for name, rule in alerts().items():
        path, _, query = path_of(rule, "dashboard_url", "hltnode_grafana_url", GRAFANA_URL).partition("?")
        folder, uid = path.split("/")
        assert folder == "d"
        assert "instance" in boards[uid]
        assert query == ("" if name in OF_A_FILE_SYSTEM else "var-instance={{ $labels.instance }}")


def test_the_base_addresses_are_not_labels_of_the_alerts() -> None:
    text = (PROMETHEUS / "prometheus.yml").read_text()
    [rule] = yaml.safe_load(text)["alerting"]["alert_relabel_configs"]
    assert rule["action"] == "labeldrop"
    named = set(re.findall(r"externalLabels\.(\w+)", ALERTS.read_text()))
    assert named == set(re.findall(r"#   (hltnode_\w+): https://", text)) == EXTERNAL_LABELS
    assert all(re.fullmatch(rule["regex"], label) for label in named)


def test_nodes_that_share_a_file_system_are_one_alert() -> None:
    for name in OF_A_FILE_SYSTEM:
        assert re.match(r"(count|min) by \(filesystem\)", alerts()[name]["expr"])


def test_no_alert_on_a_single_loss_ends_with_a_window_while_the_node_runs() -> None:
    """`increase` ends when its window has passed; that is right only for what goes on."""
    assert {name for name, rule in alerts().items() if "increase(" in rule["expr"]} == GOES_ON


def test_every_severity_has_a_receiver_and_inhibition_names_alerts_that_exist() -> None:
    config = yaml.safe_load((PROMETHEUS / "alertmanager.yml").read_text())
    receivers = {receiver["name"]: receiver for receiver in config["receivers"]}
    routed = {route["matchers"][0]: route["receiver"] for route in config["route"]["routes"]}
    assert routed == {'severity="critical"': "pager", 'severity="info"': "none"}
    assert config["route"]["receiver"] == "chat"
    assert [name for name, receiver in receivers.items() if len(receiver) > 1] == ["pager", "chat"]
    named = set(re.findall(r"Hltnode[A-Z]\w+", str(config["inhibit_rules"])))
    assert named
    assert named <= set(alerts())
    of_disks = set().union(*(re.findall(r"Hltnode[A-Z]\w+", str(rule)) for rule in config["inhibit_rules"] if
        rule["equal"] == ["filesystem"]))  # fmt: skip
    assert of_disks == OF_A_FILE_SYSTEM
    assert all(rule["equal"] in (["instance"], ["filesystem"]) for rule in config["inhibit_rules"])


def test_no_alert_has_a_label_for_each_source() -> None:
    assert not [
        name for name, rule in alerts().items() if re.search(r"\bhltnode_source_|by \([^)]*source", rule["expr"])
    ]
