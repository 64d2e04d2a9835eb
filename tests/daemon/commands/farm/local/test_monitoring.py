"""The configuration of Prometheus and Alertmanager for a farm on this machine."""

import json
import subprocess
from pathlib import Path

import pytest

from hltnode.daemon.commands.farm.local.monitoring import write_configuration
from hltnode.daemon.commands.farm.local.nodes import LocalNode
from hltnode.daemon.commands.farm.local.processes import Processes


def test_the_configuration_names_every_node_and_the_alertmanager(tmp_path: Path) -> None:
    nodes = [LocalNode(name, tmp_path / name, Processes()) for name in ("a", "b")]
    written = tmp_path / "prometheus"
    write_configuration(written, nodes, "127.0.0.1:1")
    [targets] = json.loads((written / "targets" / "nodes.yml").read_text())
    assert targets["targets"] == [node.url.removeprefix("http://") for node in nodes]
    assert json.loads((written / "alertmanagers" / "local.yml").read_text()) == [{"targets": ["127.0.0.1:1"]}]
    routes = (written / "alertmanager.yml").read_text()
    assert "webhook_configs" not in routes
    assert "HltnodeNodeDown" in routes
    write_configuration(tmp_path / "without", nodes, "")
    assert json.loads((tmp_path / "without" / "alertmanagers" / "local.yml").read_text()) == []


@pytest.mark.parametrize(
    ("program", "arguments", "file"),
    [("promtool", ("check", "config"), "prometheus.yml"), ("amtool", ("check-config",), "alertmanager.yml")],
)
def test_the_programs_accept_the_configuration(
    tmp_path: Path, prometheus_programs: Path, program: str, arguments: tuple[str, ...], file: str
) -> None:
    write_configuration(tmp_path / "written", [LocalNode("a", tmp_path / "a", Processes())], "127.0.0.1:1")
    checked = subprocess.run(
        [prometheus_programs / program, *arguments, str(tmp_path / "written" / file)],
        capture_output=True,
        text=True,
        check=False,
        timeout=60,
    )
    assert checked.returncode == 0, checked.stdout + checked.stderr
