"""Benchmarks name the packages that they need."""

import subprocess
import sys
from pathlib import Path

ROOT = Path(__file__).resolve().parents[2]
WITHOUT_PYTEST = "import runpy, sys; sys.modules['pytest'] = None; runpy.run_module('benchmarks', run_name='__main__')"


def test_benchmarks_without_the_packages_of_the_tests_name_the_command_that_installs_them() -> None:
    found = subprocess.run(
        [sys.executable, "-c", WITHOUT_PYTEST], cwd=ROOT, capture_output=True, text=True, check=False
    )
    assert found.returncode == 1
    assert found.stderr == (
        "benchmarks need the packages of the tests, which are missing here (pytest): make .venv/.developed\n"
    )
