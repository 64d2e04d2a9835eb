"""NVRTC from the wheels nvidia-cuda-nvrtc (13) and nvidia-cuda-nvrtc-cu12, with CuPy's names. It needs no GPU."""
# ruff: noqa: N802 (names of CuPy)

from __future__ import annotations

import ctypes
import importlib.util
from collections.abc import Sequence
from pathlib import Path

import pytest


class NvrtcLibraryError(RuntimeError):
    """A call of NVRTC failed."""


class NvrtcLibrary:
    """One version of NVRTC; `hltnode.processing.framework.backends.cuda_kernels.Nvrtc`."""

    NVRTCError = NvrtcLibraryError

    def __init__(self, library: Path) -> None:
        self._library = ctypes.CDLL(str(library))
        self._library.nvrtcGetErrorString.restype = ctypes.c_char_p

    def _call(self, name: str, *arguments: object) -> None:
        status = getattr(self._library, f"nvrtc{name}")(*arguments)
        if status != 0:
            raise NvrtcLibraryError(self._library.nvrtcGetErrorString(status).decode())

    def _content(self, what: str, program: int) -> bytes:
        size = ctypes.c_size_t()
        self._call(f"Get{what}Size", ctypes.c_void_p(program), ctypes.byref(size))
        content = ctypes.create_string_buffer(size.value)
        self._call(f"Get{what}", ctypes.c_void_p(program), content)
        return content.raw

    def getVersion(self) -> tuple[int, int]:
        major, minor = ctypes.c_int(), ctypes.c_int()
        self._call("Version", ctypes.byref(major), ctypes.byref(minor))
        return major.value, minor.value

    def createProgram(self, source: str, name: str, _headers: Sequence[str], _include_names: Sequence[str], /) -> int:
        program = ctypes.c_void_p()
        self._call("CreateProgram", ctypes.byref(program), source.encode(), name.encode(), 0, None, None)
        assert program.value is not None
        return program.value

    def compileProgram(self, program: int, options: Sequence[str], /) -> None:
        encoded = (ctypes.c_char_p * len(options))(*(option.encode() for option in options))
        self._call("CompileProgram", ctypes.c_void_p(program), len(options), encoded)

    def getProgramLog(self, program: int, /) -> str:
        return self._content("ProgramLog", program).rstrip(b"\0").decode()

    def getCUBIN(self, program: int, /) -> bytes:
        return self._content("CUBIN", program)

    def getPTX(self, program: int, /) -> bytes:
        return self._content("PTX", program).rstrip(b"\0")

    def destroyProgram(self, program: int, /) -> None:
        self._call("DestroyProgram", ctypes.byref(ctypes.c_void_p(program)))


def nvrtc_of(cuda_version: int) -> NvrtcLibrary:
    """The NVRTC of a CUDA version (12, 13); skips the test if it is not installed."""
    root = importlib.util.find_spec("nvidia")
    folders = list(root.submodule_search_locations or []) if root is not None else []
    for folder in folders:
        for library in sorted(Path(folder).glob(f"**/libnvrtc.so.{cuda_version}")):
            return NvrtcLibrary(library)
    pytest.skip(f"NVRTC of CUDA {cuda_version} is not installed (make test installs it)")
