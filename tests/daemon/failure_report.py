"""A failed test prints the last stimuli and effects of the event builders that are alive in it."""

from __future__ import annotations

import gc
from collections.abc import Generator
from typing import Any

import pytest

from hltnode.daemon.event_building.event_builder import EventBuilder

MAX_BUILDERS = 4


@pytest.hookimpl(wrapper=True)
def pytest_runtest_makereport(
    item: pytest.Item, call: pytest.CallInfo[Any]
) -> Generator[None, pytest.TestReport, pytest.TestReport]:
    """Add a section for each builder to the report of a failure."""
    report = yield
    if report.failed:
        gc.collect()
        builders = [each for each in gc.get_objects() if isinstance(each, EventBuilder)]
        for builder in builders[-MAX_BUILDERS:]:
            if lines := builder.recent_history():
                report.sections.append((f"history of the event builder of run {builder.run}", "\n".join(lines)))
    return report
