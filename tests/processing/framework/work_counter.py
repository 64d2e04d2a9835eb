"""Counts the work of kernels: the executed basic blocks, the same on every machine and in every run."""

from __future__ import annotations

import ctypes
import subprocess
from dataclasses import replace

from hltnode.processing.framework.backends.kernel_library import KernelLibrary
from hltnode.processing.framework.kernel_sources import KernelSources
from tests.processing.framework.chain_builder import build_kernels, compiler
from tests.processing.framework.session_folders import session_folder

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


AVX2 = ("-mavx2", "-mfma", "-mbmi", "-mbmi2", "-mpopcnt", "-mlzcnt")
"""Without AVX2, the common kernels run instead of several CPU forms, and a basic block handles one hit, not eight."""


class WorkCounter:
    """Kernels built once more so that each basic block counts itself.

    avx2: whether they are built for AVX2, if this CPU has it. One thread only. Skips the test without a C++ compiler.
    """

    def __init__(self, kernels: KernelSources) -> None:
        self.avx2 = "avx2" in KernelLibrary(kernels).targets
        folder = session_folder("hltnode-work-")
        source, counter = folder / "counter.cpp", folder / "counter.o"
        source.write_text(COUNTER)
        # Relative names: the object file is the same in every folder, so that the library is built once.
        subprocess.run([compiler(), "-O1", "-fPIC", "-c", source.name, "-o", counter.name], check=True, cwd=folder)
        self.kernels = replace(kernels, library=str(folder / "kernels.so"))
        flags = AVX2 if self.avx2 else ()
        build_kernels(self.kernels, "-O1", "-fsanitize-coverage=trace-pc", *flags, str(counter))
        self._library = ctypes.CDLL(self.kernels.library)
        self._library.hlt_take_executed.restype = ctypes.c_uint64

    def take(self) -> int:
        """Number of basic blocks executed since the last call."""
        return int(self._library.hlt_take_executed())
