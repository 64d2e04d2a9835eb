"""The kernels of all sequences of each chain under AddressSanitizer and UBSan."""

from __future__ import annotations

import os
import subprocess
import sys
from dataclasses import replace
from pathlib import Path

import pytest

from tests.processing.chains.every_chain import CHAINS
from tests.processing.framework.chain_builder import build_kernels, compiler

BATCHES = 4
MANY_BATCHES = 12
"""Of the slow test, with another seed. test_fuzz.py damages more batches in every run, without sanitizers."""
SANITIZE = ("-g1", "-fsanitize=address,undefined", "-fno-sanitize-recover=all", "-fno-omit-frame-pointer")
# The sanitizers mislead this warning of GCC.
UNWARNED = ("-Wno-maybe-uninitialized",)


@pytest.fixture(scope="module", params=CHAINS)
def chain(request: pytest.FixtureRequest) -> str:
    """The name of each chain."""
    return str(request.param)


@pytest.fixture(scope="module")
def library(chain: str, tmp_path_factory: pytest.TempPathFactory) -> Path:
    path = tmp_path_factory.mktemp("sanitized") / "kernels.so"
    # With the sanitizers, a build without optimization saves more time than its kernels take longer.
    build_kernels(replace(CHAINS[chain].chain.kernels, library=str(path)), "-O0", *SANITIZE, *UNWARNED)
    return path


def run(chain: str, library: Path, seed: int, batches: int) -> subprocess.CompletedProcess[str]:
    """Run the sequences in a Python process with AddressSanitizer; skips if the compiler does not support it."""
    runtime = subprocess.run(
        [compiler(), "-print-file-name=libasan.so"], check=True, capture_output=True, text=True
    ).stdout.strip()
    if not Path(runtime).is_absolute():
        pytest.skip("this compiler has no AddressSanitizer")
    # Python does not free all memory at its end. Its own allocator, which the sanitizer does not see, makes objects in
    # half of the time; columns are arrays of NumPy, which takes their memory from malloc in any case.
    options = {"LD_PRELOAD": runtime, "ASAN_OPTIONS": "detect_leaks=0"}
    command = [sys.executable, "-m", "tests.processing.chains.sanitized_kernels", chain, str(library)]
    command += [str(seed), str(batches), str(report_in(library))]
    return subprocess.run(command, env=os.environ | options, capture_output=True, text=True, check=False)


def report_in(library: Path) -> Path:
    """What the sanitizer reports about short columns."""
    return library.with_name("report")


@pytest.mark.expensive("compiles every kernel once more with both sanitizers")
@pytest.mark.timeout(600)
@pytest.mark.parametrize(("seed", "batches"), [(11, BATCHES), pytest.param(12, MANY_BATCHES, marks=pytest.mark.slow)])
def test_damaged_batches_make_no_kernel_leave_its_columns(chain: str, library: Path, seed: int, batches: int) -> None:
    done = run(chain, library, seed, batches)
    assert done.returncode == 0, done.stderr[-4000:]
    tested = CHAINS[chain]
    n_meps = sum(1 for _ in tested.meps(tested.chain, seed))
    sequences = tested.chain.sequences or (None,)
    status, *ran = done.stdout.splitlines()
    assert ran == [f"{name}: {n_meps * (batches + 1)} batches" for name in sequences]
    # The same process has found a kernel that leaves short columns.
    assert int(status) != 0
    assert "heap-buffer-overflow" in report_in(library).read_text()
