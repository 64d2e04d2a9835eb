"""Cost of a test run: seconds by folder, and expensive tests that state no reason.

`make test` loads this plugin (`-p tests.cost_report`). A test that takes more than 1 % of its run states the reason in
the marker `expensive("reason")`; the report lists the reasons and the tests without one. Times never fail a run,
because they depend on the machine.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Mapping
from pathlib import PurePosixPath

import pytest

LARGEST_SHARE = 0.01
"""Share of the summed durations above which a test must state its reason."""
FOLDER_DEPTH = 3
"""Folders are summed up to this depth: tests/daemon/readout."""
PROPERTY = "expensive"


class CostReport:
    """Sums the durations of the reports of a run; with pytest-xdist, in the controlling process."""

    def __init__(self) -> None:
        self.seconds: defaultdict[str, float] = defaultdict(float)
        self.reasons: dict[str, str] = {}

    def pytest_runtest_logreport(self, report: pytest.TestReport) -> None:
        """Add the duration of a phase (setup, call, teardown) to its test."""
        self.seconds[report.nodeid] += report.duration
        self.reasons.update((report.nodeid, str(value)) for name, value in report.user_properties if name == PROPERTY)

    def pytest_terminal_summary(self, terminalreporter: pytest.TerminalReporter) -> None:
        """Print the costs."""
        if not self.seconds:
            return
        terminalreporter.section("cost of tests")
        for line in cost_lines(self.seconds, self.reasons):
            terminalreporter.write_line(line)


def pytest_configure(config: pytest.Config) -> None:
    """Register the report in the process that prints the summary."""
    if not hasattr(config, "workerinput"):
        config.pluginmanager.register(CostReport(), "cost-report")


def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    """Attach the reasons to the reports, which pytest-xdist sends to the controlling process."""
    for item in items:
        if (marker := item.get_closest_marker(PROPERTY)) is not None:
            item.user_properties.append((PROPERTY, marker.args[0]))


def cost_lines(seconds: Mapping[str, float], reasons: Mapping[str, str]) -> list[str]:
    """Seconds by folder, largest first, then the tests above LARGEST_SHARE with their reasons."""
    total = sum(seconds.values())
    by_folder: defaultdict[str, float] = defaultdict(float)
    for node, duration in seconds.items():
        by_folder[folder_of(node)] += duration
    lines = [f"{duration:8.1f} s  {duration / total:6.1%}  {folder}" for folder, duration in _largest_first(by_folder)]
    for node, duration in _largest_first(seconds):
        if duration <= LARGEST_SHARE * total:
            break
        lines.append(f"{duration:8.1f} s  {node}: {reasons.get(node, 'STATES NO REASON (marker expensive)')}")
    return lines


def folder_of(node: str) -> str:
    """The folder of a test, at most FOLDER_DEPTH deep."""
    folders = PurePosixPath(node.partition("::")[0]).parent.parts
    return "/".join(folders[:FOLDER_DEPTH])


def _largest_first(seconds: Mapping[str, float]) -> list[tuple[str, float]]:
    return sorted(seconds.items(), key=lambda item: -item[1])
