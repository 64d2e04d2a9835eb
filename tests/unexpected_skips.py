"""Under CI=true a run fails if it skips a test for a reason that is not expected.

Groups of tests skip themselves where a program is missing. Without this, they would vanish from CI unnoticed. `make
test` loads this plugin (`-p tests.unexpected_skips`). Without CI the reasons are only printed.
"""

from __future__ import annotations

import os
import re
from collections import Counter

import pytest

EXIT_STATUS = 7
"""Of a run that fails for this reason. `make test` runs failed tests again, but only after the status 1."""

EXPECTED = (
    # Hardware
    "a GPU is there",
    "needs CuPy and a CUDA device",
    r"this CPU has no \S+",
    "this machine has no IPv6",
    # Programs that `make test` does not install, with tests beside them for the same code
    r"chromium is not installed .*",
    r"helm is neither in PATH nor named by HELM; .*",
    r"(debootstrap|dh|dpkg|dpkg-\w+|git|hadolint|jq|lintian|systemd-\w+) is not installed",
    r"dpkg-checkbuilddeps: .*",
    r"curl, which the pages use, is not installed",
    r"(catboost|onnx|onnxruntime|sklearn|skl2onnx) is not installed",
    # Public data of 79 MB without a licence, and the reader of its authors
    r"(km3net-testdata|km3pipe) is not installed .*",
    # What depends on the network of the machine
    r"promtool is not installed, and .*",
    r"Debian cannot be loaded: .*",
    # What depends on the user, the Python and the checkout
    "only root can boot a container",
    "folders of another user can only be made by root",
    r"the modules here are compiled for Python .*",
    r"no history here: .*",
    r"not a checkout of git: .*",
    "this compiler has no AddressSanitizer",
    "a shallow clone has no earlier commits",
    "it has already ended",
)
"""Patterns of the reasons that are expected on some machine. A reason that `make test` can remove is none of them:
modules from PyPI, a C++ compiler, NVRTC, the shared data."""


def is_expected(reason: str) -> bool:
    """Whether a test may be skipped for this reason under CI."""
    text = reason.removeprefix("Skipped: ")
    return any(re.fullmatch(pattern, text, re.DOTALL) for pattern in EXPECTED)


class UnexpectedSkips:
    """Collects the reasons of a run; with pytest-xdist, in the controlling process."""

    def __init__(self, *, fails: bool) -> None:
        self._fails = fails
        self.reasons: Counter[str] = Counter()

    def pytest_runtest_logreport(self, report: pytest.TestReport) -> None:
        """Note the reason of a skipped test."""
        self._note(report)

    def pytest_collectreport(self, report: pytest.CollectReport) -> None:
        """Note the reason of a skipped module."""
        self._note(report)

    def pytest_sessionfinish(self, session: pytest.Session) -> None:
        """Fail the run."""
        if self._fails and self.reasons and session.exitstatus in (pytest.ExitCode.OK, pytest.ExitCode.TESTS_FAILED):
            session.exitstatus = EXIT_STATUS

    def pytest_terminal_summary(self, terminalreporter: pytest.TerminalReporter) -> None:
        """Print the reasons."""
        if not self.reasons:
            return
        terminalreporter.section("unexpected skips")
        for reason, n in self.reasons.items():
            terminalreporter.write_line(f"{n} skipped: {reason}")
        effect = "This fails the run" if self._fails else "With CI=true this would fail the run"
        terminalreporter.write_line(f"{effect} (tests/unexpected_skips.py).")

    def _note(self, report: pytest.TestReport | pytest.CollectReport) -> None:
        if not report.skipped or hasattr(report, "wasxfail") or not isinstance(report.longrepr, tuple):
            return
        if not is_expected(reason := str(report.longrepr[2])):
            self.reasons[reason.removeprefix("Skipped: ")] += 1


def pytest_configure(config: pytest.Config) -> None:
    """Register the plugin in the process that prints the summary."""
    if not hasattr(config, "workerinput"):
        fails = os.environ.get("CI", "").lower() in ("1", "true")
        config.pluginmanager.register(UnexpectedSkips(fails=fails), "unexpected-skips")
