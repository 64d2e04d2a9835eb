"""The wheel contains all files that hltnode needs, and runs from any folder."""

from __future__ import annotations

import subprocess
import sys
import zipfile
from pathlib import Path

import pytest

from hltnode.processing.framework.backends.kernel_library import KernelLibrary
from hltnode.processing.lhcb.chain import CHAIN

ROOT = Path(__file__).resolve().parents[2]
CHAIN_FILES = list((ROOT / "processing").glob("*/chain.cmake"))

pytestmark = [pytest.mark.process, pytest.mark.slow, pytest.mark.timeout(1800)]


def test_a_wheel_in_a_fresh_environment_runs_the_demo_from_an_empty_folder(tmp_path: Path) -> None:
    build = [sys.executable, "-m", "pip", "wheel", "--quiet", "--no-deps", "-w", str(tmp_path / "wheel"), str(ROOT)]
    subprocess.run(build, check=True, timeout=1200)
    [wheel] = (tmp_path / "wheel").glob("hltnode-*.whl")
    names = set(zipfile.ZipFile(wheel).namelist())
    assert {
        "hltnode/deploy/node.toml",
        "hltnode/deploy/prometheus/alerts.yml",
        "hltnode/deploy/grafana/dashboards/hltnode-overview.json",
        "hltnode/deploy/systemd/hltnode.service",
        *(f"hltnode/client/c/{path.name}" for path in (ROOT / "client" / "c").iterdir()),
    } <= names
    libraries = {name for name in names if name.endswith(".so")}
    # Plain C libraries, which every Python finds.
    kernels_of_chains = {f"hltnode/{file.parent.relative_to(ROOT)}/_chain_kernels.so" for file in CHAIN_FILES}
    assert "hltnode/processing/lhcb/_chain_kernels.so" in kernels_of_chains <= libraries
    assert len(libraries - kernels_of_chains) == 5
    if sys.version_info >= (3, 12):
        assert "-cp312-abi3-" in wheel.name
        assert all(name.endswith((".abi3.so", "/_chain_kernels.so")) for name in libraries)
    environment = tmp_path / "environment"
    subprocess.run([sys.executable, "-m", "venv", str(environment)], check=True, timeout=300)
    install = [str(environment / "bin" / "python"), "-m", "pip", "install", "--quiet", str(wheel)]
    subprocess.run(install, check=True, timeout=600)
    folder = tmp_path / "empty"
    folder.mkdir()
    hltnode = str(environment / "bin" / "hltnode")
    example = subprocess.run([hltnode, "config", "--example"], cwd=folder, capture_output=True, check=True, timeout=60)
    assert example.stdout == (ROOT / "deploy" / "node.toml").read_bytes()
    kernels = (
        "from hltnode.processing.lhcb.chain import CHAIN\n"
        "from hltnode.processing.framework.backends.kernel_library import KernelLibrary\n"
        "print(*KernelLibrary(CHAIN.kernels).targets)\n"
    )
    asked = [str(environment / "bin" / "python"), "-c", kernels]
    found = subprocess.run(asked, cwd=folder, capture_output=True, text=True, check=True, timeout=60)
    assert found.stdout.split() == KernelLibrary(CHAIN.kernels).targets
    demo = [hltnode, "demo", "-n", "50", "--repeat", "1", "--feeders", "2"]
    ended = subprocess.run(demo, cwd=folder, capture_output=True, text=True, check=False, timeout=300)
    assert ended.returncode == 0, ended.stderr
    assert "the accounting closes" in ended.stdout
    assert all(len(line) <= 80 for line in ended.stdout.splitlines() if "/" not in line)
