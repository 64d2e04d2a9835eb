"""The files for operators, checked by the tools that read them, if installed."""

from __future__ import annotations

import sys
import tomllib

from hltnode.daemon.configuration.loading import load_config
from tests.deploy.tools import DEPLOY, ROOT, read_yaml, run


def test_the_reference_pages_agree_with_the_code() -> None:
    checked = run(sys.executable, "-m", "tools.generate_reference", "--check")
    assert checked.returncode == 0, checked.stderr


def test_a_release_checks_the_stable_abi_of_the_wheel_that_has_it_alone() -> None:
    tools = tomllib.loads((ROOT / "pyproject.toml").read_text())["tool"]
    wheels = tools["cibuildwheel"]
    [command] = wheels["linux"]["repair-wheel-command"]
    # abi3audit ends with 1 for a wheel without the stable ABI.
    assert command.startswith("auditwheel repair ")
    [stable] = wheels["overrides"]
    assert stable["select"] == f"{tools['scikit-build']['wheel']['py-api']}-*"
    assert f"{tools['scikit-build']['wheel']['py-api']}-manylinux_*" in wheels["build"]
    assert stable["inherit"] == {"repair-wheel-command": "append"}
    assert [command.split()[:3] for command in stable["repair-wheel-command"]] == [["uvx", "abi3audit", "--strict"]]


def test_the_port_of_the_example_is_the_one_that_is_scraped() -> None:
    port = load_config(DEPLOY / "node.toml").http.port
    assert f"127.0.0.1:{port}" in (DEPLOY / "prometheus" / "targets" / "nodes.yml").read_text()
    assert f"node:{port}" in (ROOT / "docker" / "prometheus-targets.yml").read_text()


def test_compose_has_an_alertmanager_where_its_prometheus_looks_for_one() -> None:
    services = read_yaml(ROOT / "docker" / "compose.yml")["services"]
    [group] = read_yaml(ROOT / "docker" / "prometheus-alertmanagers.yml")
    assert group["targets"] == ["alertmanager:9093"]
    mounted = {volume.split(":")[1] for volume in services["prometheus"]["volumes"]}
    rules = read_yaml(DEPLOY / "prometheus" / "prometheus.yml")["rule_files"]
    assert {f"/etc/prometheus/{name}" for name in ("alertmanagers/local.yml", *rules)} <= mounted
    assert "/etc/alertmanager/alertmanager.yml" in {v.split(":")[1] for v in services["alertmanager"]["volumes"]}


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
