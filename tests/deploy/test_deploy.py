"""The files for operators, checked by the tools that read them if they are installed."""

from __future__ import annotations

import importlib.util
import json
import re
import sys
from pathlib import Path

import pytest

from hltnode.daemon.configuration.loading import load_config
from hltnode.daemon.monitoring.counters import Counters
from hltnode.daemon.monitoring.health import Health
from hltnode.daemon.monitoring.metrics import BuildInfo, NodeCollector
from hltnode.daemon.monitoring.node_state import NodeState
from hltnode.processing.framework.memory_plan import SlotMemory
from tests.deploy.tools import DEPLOY, ROOT, read_yaml, run

DASHBOARD = DEPLOY / "grafana" / "hltnode.json"
ALERTS = DEPLOY / "prometheus" / "alerts.yml"


def exported_names() -> set[str]:
    """Every name that a query may use: families with their suffixes."""
    health = Health(loop_tick_ns=0, pipeline_tick_ns=0, feeders_expected=1)
    names = set()
    suffixes = {"counter": ["_total"], "info": ["_info"], "gauge": [""], "histogram": ["_bucket", "_count", "_sum", ""]}
    collector = NodeCollector(
        Counters(),
        health,
        BuildInfo(version="", node="", backend="", tck=""),
        NodeState(),
        SlotMemory(0, 0, 0, 0),
        health_ns=0,
        monotonic_ns=0,
        wall_s=0.0,
    )
    for family in collector.collect():
        names |= {family.name + suffix for suffix in suffixes[family.type]}
    return names


def files_with_metric_names() -> list[Path]:
    return [
        DASHBOARD,
        ALERTS,
        *sorted((DEPLOY / "prometheus" / "tests").glob("*.yml")),
        *sorted(ROOT.glob("docs/**/*.md")),
    ]


@pytest.mark.parametrize("path", files_with_metric_names(), ids=lambda path: str(path.relative_to(ROOT)))
def test_every_metric_named_in_a_file_is_exported(path: Path) -> None:
    named = set(re.findall(r"\bhlt1_[a-z0-9_]*[a-z0-9]\b(?!_?\*)", path.read_text(encoding="utf-8")))
    assert named <= exported_names()


def test_the_search_for_metric_names_finds_some() -> None:
    assert len(re.findall(r"\bhlt1_[a-z0-9_]+", DASHBOARD.read_text())) > 30
    assert len(re.findall(r"\bhlt1_[a-z0-9_]+", ALERTS.read_text())) > 10


def test_the_reference_pages_agree_with_the_code() -> None:
    checked = run(sys.executable, ROOT / "tools" / "generate_reference.py", "--check")
    assert checked.returncode == 0, checked.stderr


def test_the_dashboard_agrees_with_its_generator() -> None:
    if importlib.util.find_spec("grafana_foundation_sdk") is None:
        pytest.skip("grafana-foundation-sdk is not installed (extra: dashboards)")
    checked = run(sys.executable, ROOT / "tools" / "generate_dashboard.py", "--check")
    assert checked.returncode == 0, checked.stderr


def test_every_panel_of_the_dashboard_queries_the_chosen_nodes() -> None:
    panels = json.loads(DASHBOARD.read_text())["panels"]
    queries = [target["expr"] for panel in panels for target in panel.get("targets", [])]
    assert len(queries) > 25
    for query in queries:
        selectors = re.findall(r"\b(?:hlt1|process)_[a-z0-9_]+(\{[^}]*\})?", query)
        assert selectors
        assert all('instance=~"$instance"' in selector for selector in selectors), query


def test_the_alerts_pass_their_tests(promtool: str) -> None:
    tests = sorted((DEPLOY / "prometheus" / "tests").glob("*.yml"))
    checked = run(promtool, "test", "rules", *tests)
    assert checked.returncode == 0, checked.stdout + checked.stderr


def test_the_prometheus_configuration_is_valid(promtool: str) -> None:
    checked = run(promtool, "check", "config", DEPLOY / "prometheus" / "prometheus.yml")
    assert checked.returncode == 0, checked.stdout + checked.stderr


def test_every_alert_is_tested_and_documented() -> None:
    rules = [rule for group in read_yaml(ALERTS)["groups"] for rule in group["rules"]]
    tests = (DEPLOY / "prometheus" / "tests" / "alerts_test.yml").read_text()
    page = (ROOT / "docs" / "how-to" / "when-it-is-3-am.md").read_text()
    assert len(rules) >= 2
    for rule in rules:
        assert f"alertname: {rule['alert']}\n" in tests
        assert f"## {rule['alert']}\n" in page
        assert rule["labels"]["severity"] in {"critical", "warning"}


def test_the_port_of_the_example_is_the_one_that_is_scraped() -> None:
    port = load_config(DEPLOY / "node.toml").http.port
    assert f"127.0.0.1:{port}" in (DEPLOY / "prometheus" / "targets" / "nodes.yml").read_text()
    assert f"node:{port}" in (ROOT / "docker" / "prometheus-targets.yml").read_text()


def test_compose_publishes_ports_on_localhost_only() -> None:
    services = read_yaml(ROOT / "docker" / "compose.yml")["services"]
    ports = [port for service in services.values() for port in service["ports"]]
    assert ports
    assert all(port.startswith("127.0.0.1:") for port in ports)


def test_files_that_compose_mounts_exist() -> None:
    compose = ROOT / "docker" / "compose.yml"
    for service in read_yaml(compose)["services"].values():
        for volume in service.get("volumes", []):
            source = volume.split(":")[0]
            if source.startswith("."):
                assert (compose.parent / source).exists()
