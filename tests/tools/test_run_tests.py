"""`make test` runs tests that failed once more, and nothing else makes a run good."""

import os
import subprocess
from pathlib import Path

ROOT = Path(__file__).resolve().parents[2]
MAKE = """#!/bin/sh
case "$2" in
  tests-that-compute) exit $COMPUTED ;;
  tests-that-wait) [ $PYTEST = 0 ] || { [ $PYTEST = none ] || echo $PYTEST >"$ALONE_STATUS"; exit 2; } ;;
  tests-that-failed) echo once more; exit $AGAIN ;;
esac
"""


def test_a_run_is_good_only_if_all_tests_ran_and_those_that_failed_pass_once_more(tmp_path: Path) -> None:
    (tmp_path / "make").write_text(MAKE)
    (tmp_path / "make").chmod(0o755)
    names = {"MAKE": str(tmp_path / "make"), "ALONE_STATUS": "build/status"}
    # Status of pytest (none: it was killed before it wrote one), of the tests that failed, of those that compute.
    for pytest_status, again, computed, is_good, runs_again in (
        ("0", "0", "0", True, False),
        ("0", "0", "2", False, False),
        ("1", "0", "0", True, True),
        ("1", "2", "0", False, True),
        ("1", "0", "2", False, True),
        # The file of the run before must not count.
        ("none", "0", "0", False, False),
        ("3", "0", "0", False, False),
        ("7", "0", "0", False, False),
        ("137", "0", "0", False, False),
    ):
        done = subprocess.run(
            ["bash", str(ROOT / "tools" / "run_tests.sh")],
            cwd=tmp_path,
            env={**os.environ, **names, "PYTEST": pytest_status, "AGAIN": again, "COMPUTED": computed},
            capture_output=True,
            text=True,
            timeout=60,
            check=False,
        )
        found = (done.returncode == 0, "once more" in done.stdout)
        assert found == (is_good, runs_again), (pytest_status, again, computed, done.stdout, done.stderr)
