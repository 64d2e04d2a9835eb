"""The PTX of a chain's kernels, and machines that run it; skips the test if a tool is missing."""

from __future__ import annotations

import functools

from hltnode.processing.framework.kernel_sources import KernelSources
from hltnode.processing.lhcb.chain import CHAIN
from tests.processing.framework.chain_builder import compiler
from tests.processing.framework.nvrtc_library import nvrtc_of
from tests.ptx.machine import Machine
from tests.ptx.nvrtc import ptx_of
from tests.ptx.parser import Module, parse

CUDA_VERSION = 13


@functools.cache
def module_of(architecture: str, kernels: KernelSources = CHAIN.kernels) -> Module:
    """The kernels of a chain, by default LHCb's, compiled by NVRTC for compute_<architecture>."""
    return parse(ptx_of(nvrtc_of(CUDA_VERSION), kernels, architecture))


def machine_of(module: Module, *, backward: bool = False) -> Machine:
    """A machine with the kernels of a module."""
    compiler()
    return Machine(module, backward=backward)
