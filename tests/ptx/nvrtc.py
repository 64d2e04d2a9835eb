"""The kernels compiled by NVRTC with the options of production: their PTX, and their resources from the log of
ptxas."""

from __future__ import annotations

import re
from dataclasses import dataclass
from pathlib import Path

from hltnode.processing.framework.backends.cuda_kernels import (
    COMPILE_OPTIONS,
    compile_options,
    compiled_program,
    compiler_version,
    translation_unit,
)
from hltnode.processing.framework.kernel_sources import KernelSources
from tests.processing.framework.build_cache import built
from tests.processing.framework.nvrtc_library import NvrtcLibrary


@dataclass(frozen=True, slots=True)
class Resources:
    """Resources of a kernel on a multiprocessor, from ptxas: bytes, and registers per thread."""

    registers: int
    stack: int
    spill_stores: int
    spill_loads: int
    shared: int


def ptx_of(nvrtc: NvrtcLibrary, kernels: KernelSources, architecture: str) -> str:
    """PTX of the kernels, compiled once for all workers. Raises BackendError with the log."""
    return _compiled(nvrtc, kernels, architecture).read_text()


def _compiled(nvrtc: NvrtcLibrary, kernels: KernelSources, architecture: str) -> Path:
    """The PTX of the kernels for sm_<architecture>, with the log of ptxas beside it: one compilation gives both."""
    target = (f"--gpu-architecture=sm_{architecture}", "--ptxas-options=-v")

    def write(path: Path) -> None:
        with compiled_program(nvrtc, translation_unit(kernels), (*compile_options(kernels), *target)) as program:
            path.write_bytes(nvrtc.getPTX(program))
            _log_beside(path).write_text(nvrtc.getProgramLog(program))

    return built("kernels.ptx", [*target, *_parts(nvrtc, kernels)], write)


def _log_beside(ptx: Path) -> Path:
    return ptx.with_name("ptxas.log")


def _parts(nvrtc: NvrtcLibrary, kernels: KernelSources) -> list[str]:
    """Everything that decides what NVRTC makes of the kernels of a chain, without the names of its folders."""
    return [compiler_version(nvrtc), *COMPILE_OPTIONS, kernels.digest(), translation_unit(kernels)]


def ptx_of_source(nvrtc: NvrtcLibrary, source: str, architecture: str, *options: str) -> str:
    """PTX of one translation unit for compute_<architecture>. Raises BackendError with the log."""
    with compiled_program(nvrtc, source, (*options, f"--gpu-architecture=compute_{architecture}")) as program:
        return nvrtc.getPTX(program).decode()


_ENTRY = re.compile(r"Compiling entry function '(\w+)'(.*?)(?=Compiling entry function|\Z)", re.DOTALL)


def resources(nvrtc: NvrtcLibrary, architecture: str, kernels: KernelSources) -> dict[str, Resources]:
    """Resources of the kernels on sm_<architecture>, by name, from the log of ptxas, which is part of NVRTC."""
    log = _log_beside(_compiled(nvrtc, kernels, architecture)).read_text()
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
