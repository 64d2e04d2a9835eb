"""Prometheus and Alertmanager of a farm on this machine, where installed, with the alerts of the deployment."""

import json
import shutil
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

from hltnode.daemon.commands.demo_processes import free_ports
from hltnode.daemon.commands.farm.local.nodes import LocalNode
from hltnode.daemon.commands.farm.local.processes import Processes

DEPLOYED = Path(__file__).parents[4] / "deploy" / "prometheus"
"""The configuration of Prometheus that a farm has: scraping, recording rules, alerts, routes."""
PROGRAMS = {"prometheus": ("prometheus",), "alertmanager": ("prometheus-alertmanager", "alertmanager")}
"""Names of the programs; Debian has another one."""
NO_RECEIVERS = """receivers:
  - name: pager
  - name: chat
  - name: none

"""


@dataclass(frozen=True, slots=True)
class Monitoring:
    """Addresses of what runs; empty without."""

    prometheus: str = ""
    alertmanager: str = ""


def write_configuration(directory: Path, nodes: Sequence[LocalNode], alertmanager: str) -> None:
    """Write the configuration of both programs into a new folder. alertmanager: HOST:PORT, empty: none."""
    shutil.copytree(DEPLOYED, directory, ignore=shutil.ignore_patterns("tests"))
    targets = [{"targets": [node.url.removeprefix("http://") for node in nodes]}]
    # JSON is YAML.
    (directory / "targets" / "nodes.yml").write_text(json.dumps(targets))
    alertmanagers = [{"targets": [alertmanager]}] if alertmanager else []
    (directory / "alertmanagers" / "local.yml").write_text(json.dumps(alertmanagers))
    # The receivers of the example are not here: its pages show the alerts.
    routes = directory / "alertmanager.yml"
    before, _, rest = routes.read_text().partition("receivers:\n")
    routes.write_text(before + NO_RECEIVERS + "inhibit_rules:\n" + rest.partition("inhibit_rules:\n")[2])


def start_monitoring(directory: Path, nodes: Sequence[LocalNode], processes: Processes) -> Monitoring:
    """Start the installed programs; those that are missing are left out, and Alertmanager needs Prometheus."""
    prometheus, alertmanager = (
        next((path for name in names if (path := shutil.which(name))), None) for names in PROGRAMS.values()
    )
    if prometheus is None:
        return Monitoring()
    of_prometheus, of_alertmanager = (f"127.0.0.1:{port}" for port in free_ports(2))
    write_configuration(directory, nodes, of_alertmanager if alertmanager else "")
    processes.start(
        [
            *(prometheus, f"--config.file={directory}/prometheus.yml", f"--storage.tsdb.path={directory}/data"),
            f"--web.listen-address={of_prometheus}",
        ],
        directory / "prometheus.log",
    )
    if alertmanager is None:
        return Monitoring(f"http://{of_prometheus}")
    processes.start(
        [
            *(alertmanager, f"--config.file={directory}/alertmanager.yml", f"--storage.path={directory}/alerts"),
            *(f"--web.listen-address={of_alertmanager}", "--cluster.listen-address="),
        ],
        directory / "alertmanager.log",
    )
    return Monitoring(f"http://{of_prometheus}", f"http://{of_alertmanager}")
