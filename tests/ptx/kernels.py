"""The PTX of a chain's kernels, and machines that run it; skips the test where a tool is missing."""

from __future__ import annotations

import functools
from pathlib import Path

import pytest

from hltnode.processing.framework.kernel_sources import KernelSources
from hltnode.processing.lhcb.hlt1 import HLT1
from tests.processing.framework.chain_builder import compiler
from tests.ptx.machine import Machine
from tests.ptx.nvrtc import compile_kernels, nvrtc_library
from tests.ptx.parser import Module, parse


def require_nvrtc(cuda_version: int = 13) -> Path:
    """The NVRTC of a CUDA version, or a skip."""
    library = nvrtc_library(cuda_version)
    if library is None:
        pytest.skip(f"NVRTC of CUDA {cuda_version} is not installed (make test installs it)")
    return library


@functools.cache
def module_of(architecture: str, cuda_version: int = 13, kernels: KernelSources = HLT1.kernels) -> Module:
    """The kernels as NVRTC makes them for compute_<architecture>."""
    return parse(compile_kernels(require_nvrtc(cuda_version), f"compute_{architecture}", kernels).ptx)


def machine_of(module: Module, *, backward: bool = False) -> Machine:
    """A machine with the kernels of a module."""
    compiler()
    return Machine(module, backward=backward)
