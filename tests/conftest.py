"""Fixtures for all tests: the shared data folder, reproducible hypothesis runs."""

from __future__ import annotations

import os
from pathlib import Path

import pytest
from hypothesis import HealthCheck, settings

settings.register_profile("hltnode", print_blob=True, deadline=None, suppress_health_check=[HealthCheck.too_slow])
settings.load_profile("hltnode")


@pytest.fixture(scope="session")
def shared() -> Path:
    """The folder of shared data, or a skip that names what is missing."""
    folder = Path(os.environ.get("HLTNODE_SHARED", Path(__file__).resolve().parents[2] / "shared"))
    if not folder.is_dir():
        pytest.skip(f"shared data folder is missing: {folder}")
    return folder
