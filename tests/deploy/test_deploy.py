"""The files for operators, checked by the tools that read them if they are installed."""

from __future__ import annotations

import configparser
import re
import shutil
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest

from hltnode.daemon.configuration.loading import load_config

ROOT = Path(__file__).resolve().parents[2]
DEPLOY = ROOT / "deploy"
UNIT = DEPLOY / "systemd" / "hltnode.service"
DOCKERFILES = sorted((ROOT / "docker").glob("Dockerfile.*"))


def run(*command: str | Path) -> subprocess.CompletedProcess[str]:
    return subprocess.run(
        [str(part) for part in command], capture_output=True, text=True, check=False, timeout=50, cwd=ROOT
    )


def tool(name: str) -> str:
    beside_python = Path(sys.executable).with_name(name)
    path = str(beside_python) if beside_python.exists() else shutil.which(name)
    if path is None:
        pytest.skip(f"{name} is not installed")
    return path


def read_yaml(path: Path) -> Any:
    yaml = pytest.importorskip("yaml", reason="PyYAML is not installed")
    return yaml.safe_load(path.read_text(encoding="utf-8"))


def test_the_reference_pages_agree_with_the_code() -> None:
    checked = run(sys.executable, ROOT / "tools" / "generate_reference.py", "--check")
    assert checked.returncode == 0, checked.stderr


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


@pytest.fixture(params=["hltnode.service", "hltnode@.service"])
def unit_with_a_program_that_exists(tmp_path: Path, request: pytest.FixtureRequest) -> Path:
    text = UNIT.read_text()
    assert "ExecStart=/opt/hltnode/bin/hltnode " in text
    path: Path = tmp_path / request.param
    path.write_text(text.replace("ExecStart=/opt/hltnode/bin/hltnode ", f"ExecStart={sys.executable} "))
    return path


def test_systemd_accepts_the_unit(unit_with_a_program_that_exists: Path) -> None:
    checked = run(tool("systemd-analyze"), "verify", "--man=no", unit_with_a_program_that_exists)
    assert (checked.returncode, checked.stdout + checked.stderr) == (0, "")


def test_the_unit_is_confined(unit_with_a_program_that_exists: Path) -> None:
    checked = run(
        tool("systemd-analyze"), "security", "--offline=yes", "--threshold=25", unit_with_a_program_that_exists
    )
    assert checked.returncode == 0, checked.stdout + checked.stderr


def test_the_unit_waits_for_ready_has_a_watchdog_and_allows_time_to_drain() -> None:
    unit = configparser.ConfigParser(strict=False, interpolation=None)
    unit.optionxform = str  # type: ignore[assignment,method-assign]
    unit.read(UNIT)
    service = unit["Service"]
    assert service["Type"] == "notify"
    assert int(service["WatchdogSec"]) == 30
    assert service["KillMode"] == "mixed"
    assert int(service["TimeoutStopSec"]) >= 30
    assert service["LimitMEMLOCK"] == "infinity"
    assert service["ExecReload"] == "/bin/kill -HUP $MAINPID"


def test_instances_of_the_unit_share_no_folder_and_no_configuration() -> None:
    unit = configparser.ConfigParser(strict=False, interpolation=None)
    unit.optionxform = str  # type: ignore[assignment,method-assign]
    unit.read(UNIT)
    service = unit["Service"]
    own = ("ExecStart", "StateDirectory", "CacheDirectory", "RuntimeDirectory", "WorkingDirectory", "Environment")
    assert [key for key in own if "%i" not in service[key]] == []


@pytest.mark.parametrize("path", DOCKERFILES, ids=lambda path: path.name)
def test_hadolint_accepts_the_dockerfile(path: Path) -> None:
    checked = run(tool("hadolint"), path)
    assert (checked.returncode, checked.stdout) == (0, "")


@pytest.mark.parametrize("path", DOCKERFILES, ids=lambda path: path.name)
def test_the_image_runs_without_privileges_and_receives_signals(path: Path) -> None:
    final = path.read_text().split("\nFROM ")[-1]
    assert "\nUSER 987:987\n" in final
    assert '\nENTRYPOINT ["hltnode"]\n' in final
    assert "\nSTOPSIGNAL SIGTERM\n" in final
    assert "\nHEALTHCHECK " in final
    assert "org.opencontainers.image.licenses" in final


def test_there_are_images_for_both_back_ends() -> None:
    assert [path.name for path in DOCKERFILES] == ["Dockerfile.cpu", "Dockerfile.cuda"]


def test_the_environment_of_the_images_is_a_valid_configuration(monkeypatch: pytest.MonkeyPatch) -> None:
    for path in DOCKERFILES:
        for name, value in re.findall(r"(HLTNODE_\w+)=(\S+)", path.read_text()):
            monkeypatch.setenv(name, value)
        config = load_config(DEPLOY / "node.toml")
        assert config.network.data == "tcp://*:5555"
        assert config.pipeline.backend == path.suffix.removeprefix(".")


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
