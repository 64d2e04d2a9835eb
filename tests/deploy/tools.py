"""Shared by the tests of the files for operators: programs that read such files, and paths of the files."""

from __future__ import annotations

import shutil
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest

from hltnode.daemon.node.node import HISTOGRAM_SECONDS, PICTURE_SECONDS, STOP_SECONDS
from hltnode.daemon.run_control.controller import DRAIN_SECONDS
from hltnode.daemon.security import connection_limiter

ROOT = Path(__file__).resolve().parents[2]
DEPLOY = ROOT / "deploy"
LONGEST_STOP_SECONDS = (
    2 * DRAIN_SECONDS + 3 * STOP_SECONDS + PICTURE_SECONDS + HISTOGRAM_SECONDS + connection_limiter.STOP_SECONDS
)
"""Longest drain of a node: granted MEPs, open MEPs, then the ends of back end, gathering, output, pictures, histograms
and limiter, one after the other."""


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
