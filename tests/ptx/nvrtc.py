"""Compiles kernels with NVRTC, as the CUDA back end does. NVRTC needs no GPU."""

from __future__ import annotations

import ctypes
import importlib.util
import re
from dataclasses import dataclass
from pathlib import Path

from hltnode.processing.framework.backends.cuda import compile_options, translation_unit
from hltnode.processing.framework.kernel_sources import KernelSources


@dataclass(frozen=True, slots=True)
class Resources:
    """What a kernel takes of a multiprocessor, as ptxas says; bytes but for the registers, which are of a thread."""

    registers: int
    stack: int
    spill_stores: int
    spill_loads: int
    shared: int


@dataclass(frozen=True, slots=True)
class Compiled:
    """PTX text and log of one compilation."""

    ptx: str
    log: str


def nvrtc_library(cuda_version: int) -> Path | None:
    """The NVRTC of the wheels nvidia-cuda-nvrtc (13) and nvidia-cuda-nvrtc-cu12, or None."""
    root = importlib.util.find_spec("nvidia")
    for folder in list(root.submodule_search_locations or []) if root is not None else []:
        for library in sorted(Path(folder).glob(f"**/libnvrtc.so.{cuda_version}")):
            return library
    return None


def compile_kernels(library: Path, target: str, kernels: KernelSources, *options: str) -> Compiled:
    """Compile for `target`, compute_<n> or sm_<n>, with the options of production and some more.

    Raises RuntimeError with the log.
    """
    return compile_source(
        library, translation_unit(kernels), *compile_options(kernels), f"--gpu-architecture={target}", *options
    )


def compile_source(library: Path, source: str, *options: str) -> Compiled:
    """Compile one translation unit. Raises RuntimeError with the log."""
    nvrtc = ctypes.CDLL(str(library))
    program = ctypes.c_void_p()
    if nvrtc.nvrtcCreateProgram(ctypes.byref(program), source.encode(), b"chain.cu", 0, None, None) != 0:
        raise RuntimeError("NVRTC makes no program")
    try:
        encoded = (ctypes.c_char_p * len(options))(*(option.encode() for option in options))
        result = nvrtc.nvrtcCompileProgram(program, len(options), encoded)
        log = _text(nvrtc.nvrtcGetProgramLogSize, nvrtc.nvrtcGetProgramLog, program)
        if result != 0:
            raise RuntimeError(log)
        return Compiled(_text(nvrtc.nvrtcGetPTXSize, nvrtc.nvrtcGetPTX, program), log)
    finally:
        nvrtc.nvrtcDestroyProgram(ctypes.byref(program))


def _text(size_of: ctypes._NamedFuncPointer, read: ctypes._NamedFuncPointer, program: ctypes.c_void_p) -> str:
    size = ctypes.c_size_t()
    size_of(program, ctypes.byref(size))
    text = ctypes.create_string_buffer(size.value)
    read(program, text)
    return text.value.decode()


_ENTRY = re.compile(r"Compiling entry function '(\w+)'(.*?)(?=Compiling entry function|\Z)", re.DOTALL)


def resources(library: Path, architecture: str, kernels: KernelSources) -> dict[str, Resources]:
    """What the kernels take on sm_<architecture>, by name, from the log of ptxas, which is part of NVRTC."""
    log = compile_kernels(library, f"sm_{architecture}", kernels, "--ptxas-options=-v").log
    return {entry[1]: _resources(entry[2]) for entry in _ENTRY.finditer(log)}


def _resources(text: str) -> Resources:
    def number(pattern: str) -> int:
        match = re.search(pattern, text)
        return int(match[1]) if match else 0

    return Resources(
        registers=number(r"Used (\d+) registers"),
        stack=number(r"(\d+) bytes stack frame"),
        spill_stores=number(r"(\d+) bytes spill stores"),
        spill_loads=number(r"(\d+) bytes spill loads"),
        shared=number(r"(\d+) bytes smem"),
    )
