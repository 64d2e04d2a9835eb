"""Counts the work of kernels: the executed basic blocks, the same on every machine and in every run."""

from __future__ import annotations

import ctypes
import subprocess
import tempfile
from dataclasses import replace
from pathlib import Path

from hltnode.processing.framework.kernel_sources import KernelSources
from tests.processing.framework.chain_builder import build_kernels, compiler

COUNTER = """
#include <cstdint>
static uint64_t executed;
extern "C" void __sanitizer_cov_trace_pc() { ++executed; }
extern "C" __attribute__((visibility("default"))) uint64_t hlt_take_executed()
{
    const uint64_t taken = executed;
    executed = 0;
    return taken;
}
"""


class WorkCounter:
    """Kernels that are built again so that each executed basic block is counted. One thread only.

    Skips the test if there is no C++ compiler.
    """

    def __init__(self, kernels: KernelSources) -> None:
        folder = Path(tempfile.mkdtemp(prefix="hltnode-work-"))
        source, counter = folder / "counter.cpp", folder / "counter.o"
        source.write_text(COUNTER)
        subprocess.run([compiler(), "-O1", "-fPIC", "-c", str(source), "-o", str(counter)], check=True)
        self.kernels = replace(kernels, library=str(folder / "kernels.so"))
        build_kernels(self.kernels, "-O1", "-fsanitize-coverage=trace-pc", str(counter))
        self._library = ctypes.CDLL(self.kernels.library)
        self._library.hlt_take_executed.restype = ctypes.c_uint64

    def take(self) -> int:
        """Number of basic blocks executed since the last call."""
        return int(self._library.hlt_take_executed())
