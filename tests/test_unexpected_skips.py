"""Which skipped tests fail a run under CI."""

import os
import subprocess
import sys
from pathlib import Path

import pytest

from tests.unexpected_skips import EXIT_STATUS, is_expected

ROOT = Path(__file__).resolve().parents[1]


@pytest.mark.parametrize(
    ("reason", "expected"),
    [
        ("this CPU has no avx512", True),
        ("Skipped: needs CuPy and a CUDA device", True),
        ("helm is neither in PATH nor named by HELM; tools/fetch_helm.sh fetches it", True),
        ("Debian cannot be loaded: E: line one\nE: line two", True),
        ("dh is not installed", True),
        ("dpkg-checkbuilddeps: error: Unmet build dependencies: debhelper", True),
        ("PyYAML is not installed", False),
        ("the extra `plot` is not installed", False),
        ("no C++ compiler: the kernels of this test cannot be built", False),
        ("NVRTC of CUDA 12 is not installed (make test installs it)", False),
        ("libzmq has no CURVE", False),
        ("shared data folder is missing: ../shared", False),
        ("a GPU is there, and more", False),
    ],
)
def test_only_what_make_test_cannot_change_is_expected(reason: str, expected: bool) -> None:
    assert is_expected(reason) == expected


@pytest.mark.parametrize(
    ("reason", "ci", "other", "code"),
    [
        ("no compiler", "true", "pass", EXIT_STATUS),
        ("no compiler", "true", "assert 0", EXIT_STATUS),
        ("no compiler", "", "assert 0", 1),
        ("no compiler", "", "pass", 0),
        ("a GPU is there", "true", "pass", 0),
    ],
)
def test_an_unexpected_skip_fails_the_run_under_ci(tmp_path: Path, reason: str, ci: str, other: str, code: int) -> None:
    (tmp_path / "test_it.py").write_text(
        f"import pytest\ndef test_one():\n    pytest.skip({reason!r})\ndef test_two():\n    {other}\n"
    )
    line = [sys.executable, "-m", "pytest", "-p", "tests.unexpected_skips", "-p", "no:cacheprovider", str(tmp_path)]
    run = subprocess.run(
        [*line, "-c", os.devnull, "--rootdir", str(tmp_path)],
        cwd=ROOT, env={**os.environ, "CI": ci}, capture_output=True, text=True, timeout=60, check=False,
    )  # fmt: skip
    assert run.returncode == code, run.stdout + run.stderr
    assert ("1 skipped: no compiler" in run.stdout) == (reason == "no compiler")
