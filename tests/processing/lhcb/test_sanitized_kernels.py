"""The kernels of all sequences under AddressSanitizer and UBSan."""

from __future__ import annotations

import os
import subprocess
import sys
from dataclasses import replace
from pathlib import Path

import pytest

from hltnode.processing.lhcb.chain import CHAIN
from tests.processing.framework.chain_builder import build_kernels, compiler

BATCHES = 20
SANITIZE = ("-g1", "-fsanitize=address,undefined", "-fno-sanitize-recover=all", "-fno-omit-frame-pointer")


@pytest.fixture(scope="module")
def library(tmp_path_factory: pytest.TempPathFactory) -> Path:
    path = tmp_path_factory.mktemp("sanitized") / "kernels.so"
    build_kernels(replace(CHAIN.kernels, library=str(path)), "-O1", *SANITIZE)
    return path


def run(library: Path, program: str, *arguments: object) -> subprocess.CompletedProcess[str]:
    """Run a module in a Python into which AddressSanitizer is loaded; skips where the compiler has none."""
    runtime = subprocess.run(
        [compiler(), "-print-file-name=libasan.so"], check=True, capture_output=True, text=True
    ).stdout.strip()
    if not Path(runtime).is_absolute():
        pytest.skip("this compiler has no AddressSanitizer")
    # Python itself does not free everything at its end.
    options = {"LD_PRELOAD": runtime, "ASAN_OPTIONS": "detect_leaks=0", "PYTHONMALLOC": "malloc"}
    command = [sys.executable, "-m", program, str(library), *map(str, arguments)]
    return subprocess.run(command, env=os.environ | options, capture_output=True, text=True, check=False)


@pytest.mark.timeout(600)
def test_damaged_batches_make_no_kernel_leave_its_columns(library: Path) -> None:
    done = run(library, "tests.processing.lhcb.sanitized_kernels", 11, BATCHES)
    assert done.returncode == 0, done.stderr[-4000:]
    assert done.stdout.splitlines() == [f"{name}: {2 * (BATCHES + 1)} batches" for name in CHAIN.sequences]


@pytest.mark.timeout(600)
def test_a_kernel_that_leaves_its_columns_is_found(library: Path) -> None:
    done = run(library, "tests.processing.lhcb.sanitized_kernels", 11, 1, "--short")
    assert done.returncode != 0
    assert "heap-buffer-overflow" in done.stderr
