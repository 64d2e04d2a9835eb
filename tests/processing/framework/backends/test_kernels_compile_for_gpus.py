"""Every kernel compiles with NVRTC for every GPU architecture that we promise. NVRTC needs no GPU."""

import ctypes
import importlib.util
from pathlib import Path
from types import ModuleType

import pytest

from hltnode.processing.framework.backends.cuda import compile_options
from hltnode.processing.framework.kernel_sources import KernelSources
from hltnode.processing.lhcb.hlt1 import HLT1

ARCHITECTURES = {13: ("75", "80", "86", "89", "90", "100", "120"), 12: ("70", "75", "90")}
"""CUDA 13 has dropped 70; CUDA 12 keeps it."""
ALWAYS = {(13, "75"), (13, "90"), (13, "120"), (12, "70")}
"""The oldest and the newest of each, and what most farms have; the rest are slow tests."""


def nvrtc_library(cuda_version: int) -> Path:
    """The NVRTC of the wheels nvidia-cuda-nvrtc (13) and nvidia-cuda-nvrtc-cu12."""
    root = importlib.util.find_spec("nvidia")
    folders = list(root.submodule_search_locations or []) if root is not None else []
    for folder in folders:
        for library in sorted(Path(folder).glob(f"**/libnvrtc.so.{cuda_version}")):
            return library
    pytest.skip(f"NVRTC of CUDA {cuda_version} is not installed (make test installs it)")


def compile_kernels(library: Path, architecture: str, kernels: KernelSources) -> bytes:
    """Compile the kernels for sm_<architecture> and return the cubin. Raises RuntimeError with the log."""
    nvrtc = ctypes.CDLL(str(library))
    program = ctypes.c_void_p()
    source = f'#include "{kernels.header}"\n'.encode()
    assert nvrtc.nvrtcCreateProgram(ctypes.byref(program), source, b"chain.cu", 0, None, None) == 0
    options = [*compile_options(kernels), f"--gpu-architecture=sm_{architecture}"]
    encoded = (ctypes.c_char_p * len(options))(*(option.encode() for option in options))
    result = nvrtc.nvrtcCompileProgram(program, len(options), encoded)
    size = ctypes.c_size_t()
    if result != 0:
        nvrtc.nvrtcGetProgramLogSize(program, ctypes.byref(size))
        log = ctypes.create_string_buffer(size.value)
        nvrtc.nvrtcGetProgramLog(program, log)
        raise RuntimeError(log.value.decode())
    nvrtc.nvrtcGetCUBINSize(program, ctypes.byref(size))
    cubin = ctypes.create_string_buffer(size.value)
    nvrtc.nvrtcGetCUBIN(program, cubin)
    nvrtc.nvrtcDestroyProgram(ctypes.byref(program))
    return cubin.raw


@pytest.mark.timeout(180)
@pytest.mark.parametrize(
    ("cuda_version", "architecture"),
    [
        pytest.param(version, name, marks=[] if (version, name) in ALWAYS else [pytest.mark.slow])
        for version, architectures in ARCHITECTURES.items()
        for name in architectures
    ],
)
def test_every_kernel_compiles(cuda_version: int, architecture: str) -> None:
    library = nvrtc_library(cuda_version)
    cubin = compile_kernels(library, architecture, HLT1.kernels)
    for algorithm in HLT1.sequence:
        assert algorithm.name.encode() in cubin


def test_the_kernel_of_a_second_chain_compiles(tiny: ModuleType) -> None:
    cubin = compile_kernels(nvrtc_library(13), "90", tiny.TINY.kernels)
    assert b"tiny_count_hits" in cubin
