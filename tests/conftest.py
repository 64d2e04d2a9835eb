"""Fixtures for all tests: the shared data folder, tools that only some machines have, reproducible hypothesis runs."""

from __future__ import annotations

import os
import secrets
import shutil
from pathlib import Path

import pytest
from hypothesis import HealthCheck, settings

settings.register_profile(
    "hltnode", max_examples=50, print_blob=True, deadline=None, suppress_health_check=[HealthCheck.too_slow]
)
settings.load_profile("hltnode")


@pytest.hookimpl(tryfirst=True)
def pytest_configure(config: pytest.Config) -> None:
    """Fix the seed of hypothesis before its plugin reads it, so that the header can print it."""
    if config.option.hypothesis_seed is None:
        config.option.hypothesis_seed = str(secrets.randbelow(1 << 32))


def pytest_report_header(config: pytest.Config) -> str:
    """Say how to repeat this run."""
    return f"hypothesis: --hypothesis-seed={config.option.hypothesis_seed}"


@pytest.fixture(scope="session")
def shared() -> Path:
    """The folder of shared data, or a skip that names what is missing."""
    folder = Path(os.environ.get("HLTNODE_SHARED", Path(__file__).resolve().parents[2] / "shared"))
    if not folder.is_dir():
        pytest.skip(f"shared data folder is missing: {folder}")
    return folder


@pytest.fixture(scope="session")
def promtool() -> str:
    """Path of Prometheus' promtool, or a skip that says where to get it."""
    path = os.environ.get("PROMTOOL") or shutil.which("promtool")
    if path is None:
        pytest.skip("promtool is neither in PATH nor named by PROMTOOL; tools/fetch_promtool.sh fetches it")
    return path
