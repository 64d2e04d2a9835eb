"""Costs as ratios to named baselines: `python -m benchmarks` (README.md)."""

import importlib.util
import sys

if importlib.util.find_spec("pytest") is None:
    # Benchmarks make their inputs as the tests do, and `make demo` installs no packages of the tests.
    sys.exit("benchmarks need the packages of the tests, which are missing here (pytest): make .venv/.developed")
