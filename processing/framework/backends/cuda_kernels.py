"""Compiles kernels with NVRTC, with a cache on disk. Tests and back end use the same function.

CuPy does not compile, because it appends `-ftz=true`: kernels would flush denormal numbers, unlike the CPU back end
(module cupy.cuda.compiler of CuPy 14, `_compile_with_cache_cuda`).
"""
# ruff: noqa: N802 (names of CuPy)

from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import Protocol

from hltnode.processing.framework.backends.compilation import compiling
from hltnode.processing.framework.backends.interface import BackendError
from hltnode.processing.framework.backends.kernel_cache import key_of, read_cached, write_cached
from hltnode.processing.framework.kernel_sources import KernelSources, MissingSourceError

COMPILE_OPTIONS = (
    "--std=c++17",
    "--fmad=false",
    "--ftz=false",
    "--prec-div=true",
    "--prec-sqrt=true",
    "-default-device",
)
"""Options for the rounding of the CPU back end, so that both decide alike: no contraction to FMA, denormal numbers are
kept, division and square root follow IEEE 754."""


class Nvrtc(Protocol):
    """The NVRTC interface of `cupy.cuda.nvrtc`; programs are handles."""

    @property
    def NVRTCError(self) -> type[Exception]: ...
    def getVersion(self) -> tuple[int, int]: ...
    def createProgram(self, source: str, name: str, headers: Sequence[str], include_names: Sequence[str], /) -> int: ...
    def compileProgram(self, program: int, options: Sequence[str], /) -> None: ...
    def getProgramLog(self, program: int, /) -> str: ...
    def getCUBIN(self, program: int, /) -> bytes: ...
    def getPTX(self, program: int, /) -> bytes: ...
    def destroyProgram(self, program: int, /) -> None: ...


def translation_unit(kernels: KernelSources) -> str:
    """The source that NVRTC compiles."""
    return f'#include "{kernels.header}"\n'


def compile_options(kernels: KernelSources) -> tuple[str, ...]:
    """COMPILE_OPTIONS and the include folders."""
    return (*COMPILE_OPTIONS, *(f"-I{folder}" for folder in kernels.folders))


@contextmanager
def compiled_program(nvrtc: Nvrtc, source: str, options: Sequence[str]) -> Iterator[int]:
    """A compiled NVRTC program. Raises BackendError with the compiler log."""
    program = nvrtc.createProgram(source, "kernels.cu", (), ())
    try:
        try:
            nvrtc.compileProgram(program, options)
        except nvrtc.NVRTCError as error:
            version = ".".join(map(str, nvrtc.getVersion()))
            raise BackendError(
                f"NVRTC {version} cannot compile the kernels with {' '.join(options)}: {error}\n"
                f"{nvrtc.getProgramLog(program).strip()}"
            ) from error
        yield program
    finally:
        nvrtc.destroyProgram(program)


def compile_kernels(nvrtc: Nvrtc, kernels: KernelSources, architecture: int, source: str | None = None) -> bytes:
    """The kernels of a chain, or a generated source that includes some of its files, as a cubin for sm_<architecture>.
    Raises BackendError with the log of the compiler."""
    options = (*compile_options(kernels), _target(architecture))
    with compiled_program(nvrtc, source or translation_unit(kernels), options) as program:
        return nvrtc.getCUBIN(program)


def _target(architecture: int) -> str:
    return f"--gpu-architecture=sm_{architecture}"


def compiler_version(nvrtc: Nvrtc) -> str:
    """The build of NVRTC; getVersion() cannot distinguish builds of one release."""
    with compiled_program(nvrtc, "", ()) as program:
        lines = nvrtc.getPTX(program).decode().splitlines()
    return " ".join(line for line in lines if line.startswith("// ") or line.startswith(".version"))


def cached_kernels(
    nvrtc: Nvrtc, kernels: KernelSources, architecture: int, folder: Path | None, source: str | None = None
) -> bytes:
    """The result of `compile_kernels`, cached in a folder by sources, compiler and options; replaces a damaged file.

    Raises BackendError with the compiler log, or with the name of a missing source. Warns if the file cannot be
    written.
    """
    options = (*compile_options(kernels), _target(architecture))
    try:
        digest = kernels.digest(source or "")
    except MissingSourceError as error:
        raise BackendError(f"the kernels cannot be compiled: {error}") from error
    name = f"{key_of((digest, source or '', *options, compiler_version(nvrtc)))}.cubin"
    path = None if folder is None else folder / name
    cubin = read_cached(path)
    if cubin is None:
        with compiling(cached=path is not None):
            cubin = compile_kernels(nvrtc, kernels, architecture, source)
        write_cached(path, cubin)
    return cubin
