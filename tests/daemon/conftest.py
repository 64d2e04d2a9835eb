"""Tools that only some machines have."""

from __future__ import annotations

import os
import shutil

import pytest


@pytest.fixture(scope="session")
def promtool() -> str:
    """Path of Prometheus' promtool, or a skip that says where to get it."""
    path = os.environ.get("PROMTOOL") or shutil.which("promtool")
    if path is None:
        pytest.skip("promtool is neither in PATH nor named by PROMTOOL; tools/fetch_promtool.sh fetches it")
    return path
