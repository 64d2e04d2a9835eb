"""The dashboards use names and labels that a node exports; with a real run every panel has data."""

from __future__ import annotations

import importlib.util
import json
import re
import subprocess
import sys
import threading
import time
import urllib.parse
from collections.abc import Iterator
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from typing import Any

import pytest

from hltnode.daemon.combiner.combiner import Combiner, CombinerAccess
from hltnode.daemon.combiner.combiner_metrics import CombinerCollector
from hltnode.daemon.combiner.seed_joiner import JoinRules
from hltnode.daemon.commands.demo_processes import free_ports
from hltnode.daemon.monitoring.metrics.collector import render
from tests.daemon.pages import status_page
from tests.deploy.test_alerts import RECORDING, exported_names, rules_of
from tools.generate_reference import OPEN_LABELS, example_collector

ROOT = Path(__file__).resolve().parents[2]
BOARDS = sorted((ROOT / "deploy" / "grafana" / "dashboards").glob("*.json"))
FROM_PROMETHEUS = {"instance", "job", "le", "alertname", "alertstate"}
OF_COMBINER = ("hltnode_combiner_slices", "hltnode_combiner_node_lost", "hltnode_combiner_refused")
NAME = r"(?:[a-z_]+:)?hltnode_[a-z][a-z0-9_:]+"


def panels_of(board: Path) -> list[dict[str, Any]]:
    return [panel for panel in json.loads(board.read_text())["panels"] if panel["type"] != "row"]


def expressions() -> Iterator[tuple[str, str]]:
    """Every expression with the name of its panel, annotations included."""
    for path in BOARDS:
        for panel in panels_of(path):
            for target in panel["targets"]:
                yield f"{path.stem}: {panel['title']}", target["expr"]
        for annotation in json.loads(path.read_text())["annotations"]["list"]:
            if "expr" in annotation:
                yield f"{path.stem}: {annotation['name']}", annotation["expr"]


def labels_of() -> dict[str, dict[str, set[str]]]:
    """Labels of each exported name, with their values in an example node."""
    found: dict[str, dict[str, set[str]]] = {}
    families = [*example_collector().collect(), *CombinerCollector(Combiner(JoinRules(), CombinerAccess())).collect()]
    for family in families:
        for sample in family.samples:
            labels = found.setdefault(sample.name, {})
            for label, value in sample.labels.items():
                labels.setdefault(label, set()).add(value)
    return found


def test_there_is_a_board_for_each_part() -> None:
    assert [path.stem.removeprefix("hltnode-") for path in BOARDS] == [
        "data-quality",
        "event-builder",
        "overview",
        "pipeline",
        "trigger",
    ]
    assert len(list(expressions())) > 90


def test_the_boards_agree_with_their_generator() -> None:
    if importlib.util.find_spec("grafana_foundation_sdk") is None:
        pytest.skip("grafana-foundation-sdk is not installed (extra: dashboards)")
    command = [sys.executable, "-m", "tools.generate_dashboard", "--check"]
    checked = subprocess.run(command, capture_output=True, text=True, check=False, timeout=50, cwd=ROOT)
    assert checked.returncode == 0, checked.stderr


@pytest.mark.parametrize(("panel", "expression"), list(expressions()), ids=str)
def test_every_name_and_label_of_an_expression_exists_and_only_the_chosen_nodes_are_asked(
    panel: str, expression: str
) -> None:
    recorded = {rule["record"] for rule in rules_of(RECORDING)}
    known = labels_of()
    selectors = re.findall(rf"\b({NAME}|process_\w+|up|ALERTS|scrape_duration_seconds)\b(?:{{([^}}]*)}})?", expression)
    assert selectors
    mine: set[str] = set()
    for name, inside in selectors:
        # A combiner is one for many nodes.
        assert ('instance=~"$instance"' in inside) != name.startswith(OF_COMBINER), expression
        if name.startswith("hltnode_"):
            assert name in exported_names()
            mine |= set(known.get(name, {})) | ({"node"} if name.startswith(OF_COMBINER) else set())
        if name in recorded:
            mine |= set(name.partition(":")[0].split("_"))
            continue
        for label, operator, value in re.findall(r'(\w+)(=~|!=|!~|=)"([^"]*)"', inside):
            assert label in FROM_PROMETHEUS | set(known.get(name, {})), expression
            # The remaining checks concern only values of closed sets.
            if operator == "=" and label not in FROM_PROMETHEUS | set(OPEN_LABELS):
                assert value in known[name][label], expression
    grouped = re.findall(r"\b(?:by|on|group_left) \(([^)]*)\)", expression)
    named = {label.strip() for group in grouped for label in group.split(",") if label.strip()}
    assert named <= FROM_PROMETHEUS | mine, expression


def test_every_panel_has_a_unit_and_every_board_a_shared_crosshair_runs_and_links() -> None:
    for path in BOARDS:
        board = json.loads(path.read_text())
        assert board["graphTooltip"] == 1
        assert [annotation["name"] for annotation in board["annotations"]["list"]] == ["Runs"]
        assert board["links"][0]["tags"] == ["hltnode"]
        for panel in panels_of(path):
            if panel["type"] != "heatmap":
                assert panel["fieldConfig"]["defaults"]["unit"], panel["title"]


class GpuNode:
    """A page of metrics of a node with a GPU, filled by a stand-in for NVML."""

    def __init__(self) -> None:
        page = render(example_collector())

        class Handler(BaseHTTPRequestHandler):
            def do_GET(self) -> None:
                self.send_response(200)
                self.end_headers()
                self.wfile.write(page)

            def log_message(self, *_arguments: object) -> None:
                """Nothing."""

        self.server = ThreadingHTTPServer(("127.0.0.1", 0), Handler)
        threading.Thread(target=self.server.serve_forever, daemon=True).start()


@pytest.mark.slow
@pytest.mark.process
@pytest.mark.loopback
@pytest.mark.timeout(400)
def test_every_expression_of_every_panel_gives_data_of_a_real_run(tmp_path: Path, prometheus_programs: Path) -> None:
    from tests.alerts.monitoring import Monitoring

    data, control, decisions, http, unused = free_ports(5)
    config = tmp_path / "node.toml"
    config.write_text(
        f"""
[network]
data = "tcp://127.0.0.1:{data}"
control = "tcp://127.0.0.1:{control}"
decisions = "tcp://127.0.0.1:{decisions}"
[pipeline]
backend = "cpu"
slot_bytes = 33554432
max_events = 512
[builder]
max_mep_bytes = 16777216
[output]
directory = "{tmp_path / "out"}"
[http]
port = {http}
"""
    )
    hltnode = [sys.executable, "-m", "hltnode.daemon"]
    events = str(tmp_path / "events.mdf")
    subprocess.run([*hltnode, "simulate", "-n", "60", "--seed", "3", "-o", events], check=True, cwd=ROOT, timeout=200)
    processes = [subprocess.Popen([*hltnode, "serve", "--config", str(config)], cwd=ROOT)]
    (tmp_path / "prometheus").mkdir()
    monitoring = Monitoring(tmp_path / "prometheus", prometheus_programs, 20)
    gpu = GpuNode()
    try:
        replay = [
            *hltnode,
            "replay",
            "--wait",
            events,
            "--to",
            f"tcp://127.0.0.1:{data}",
            "--control",
            f"tcp://127.0.0.1:{control}",
        ]
        processes.append(
            subprocess.Popen([*replay, "--sources", "1", "--loop", "--rate", "200", "--events-per-mep", "20"], cwd=ROOT)
        )
        # One target does not answer, so that an alert fires.
        for instance in (f"127.0.0.1:{http}", f"127.0.0.1:{gpu.server.server_port}", f"127.0.0.1:{unused}"):
            monitoring.scrape(instance)
        end = time.monotonic() + 200
        while (status := status_page(http)) is None or status["events"]["processed"] < 2000:
            assert time.monotonic() < end, status
            time.sleep(0.2)
        # Then every range of the rules contains some scrapes.
        time.sleep(15)
        empty = []
        for panel, expression in expressions():
            if any(name in expression for name in OF_COMBINER):
                continue
            asked = expression.replace("$instance", ".*").replace("$__rate_interval", "10s").replace("$__range", "30s")
            found = monitoring.get("query?" + urllib.parse.urlencode({"query": asked}))["result"]
            values = [sample["value"][1] for sample in found]
            if not any(value != "NaN" for value in values):
                empty.append((panel, asked, values[:3]))
        assert not empty
    finally:
        for process in reversed(processes):
            process.terminate()
            process.wait()
        monitoring.close()
        gpu.server.shutdown()
        gpu.server.server_close()
