"""Tools that only some machines have, and logs that do not outlive the streams of a test."""

from __future__ import annotations

import logging
import os
import shutil
from collections.abc import Iterator

import pytest
import structlog


@pytest.fixture(scope="session")
def promtool() -> str:
    """Path of Prometheus' promtool, or a skip that says where to get it."""
    path = os.environ.get("PROMTOOL") or shutil.which("promtool")
    if path is None:
        pytest.skip("promtool is neither in PATH nor named by PROMTOOL; tools/fetch_promtool.sh fetches it")
    return path


@pytest.fixture(autouse=True)
def logs_as_before() -> Iterator[None]:
    """A test that configures the logs binds them to streams which pytest closes; the next test starts afresh."""
    root = logging.getLogger()  # noqa: TID251
    handlers, level = root.handlers[:], root.level
    yield
    root.handlers[:] = handlers
    root.setLevel(level)
    structlog.reset_defaults()
