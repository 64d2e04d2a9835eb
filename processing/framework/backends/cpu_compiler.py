"""Compiles generated kernels for the CPU with the C++ compiler of this machine, and caches them on disk.

The options give the same rounding as those of the other kernels (CMakeLists.txt): no contraction to FMA.
"""

import ctypes
import shutil
import subprocess
import tempfile
import warnings
from collections.abc import Mapping, Sequence
from contextlib import suppress
from functools import cache
from pathlib import Path

from hltnode.processing.framework.backends.compilation import compiling
from hltnode.processing.framework.backends.kernel_cache import cache_folder, key_of, read_cached, write_cached

# -O1 would make 100 lines 1.1 to 1.2 times as fast (0.2 % of a sequence), but compiles 1.4 times as long.
OPTIONS = (
    *("-std=c++17", "-Og", "-ffp-contract=off", "-fno-math-errno", "-fno-trapping-math"),
    *("-fvisibility=hidden", "-shared", "-fPIC"),
)
_AVX2 = ("-mavx2", "-mfma", "-mbmi", "-mbmi2", "-mpopcnt", "-mlzcnt")
TARGET_OPTIONS = {
    "baseline": (),
    "avx2": _AVX2,
    "avx512": ("-mavx512f", "-mavx512bw", "-mavx512dq", "-mavx512vl", *_AVX2),
}
"""Options by instruction set; CMakeLists.txt has the same."""
TIMEOUT = 120.0
"""Time limit of one compilation in seconds; 100 lines take 1.0 to 1.5 s."""


def compiler() -> str | None:
    """The C++ compiler of this machine, None if there is none."""
    return next((found for name in ("c++", "g++", "clang++") if (found := shutil.which(name))), None)


@cache
def _version(path: str) -> str:
    return subprocess.run([path, "--version"], check=True, capture_output=True, text=True, timeout=TIMEOUT).stdout


def kernel_unit(name: str, source: str) -> str:
    """The translation unit of one kernel."""
    return "\n".join(
        [
            "#include <cmath>\n#include <cstdint>\n#include <cstring>",
            "namespace {",
            source,
            "}  // namespace",
            'extern "C" __attribute__((visibility("default"))) void run_block(const void* parameters, uint32_t block)',
            "{",
            f"    {name}(*static_cast<const {name}_parameters*>(parameters), dim3{{block, 1, 1}});",
            "}",
            "",
        ]
    )


_provided: dict[str, bytes] = {}


def provide(libraries: Mapping[str, bytes]) -> None:
    """Use libraries that another process compiled, by `library_key`, instead of the compiler of this machine."""
    _provided.update(libraries)


def library_key(name: str, source: str, target: str, sources_digest: str) -> str:
    """Names a library wherever it is compiled: the key has no folder and no version of a compiler."""
    return key_of((kernel_unit(name, source), sources_digest, target, *OPTIONS))


def compile_kernel(
    name: str, source: str, folders: Sequence[Path], target: str, sources_digest: str
) -> ctypes.CDLL | None:
    """A library with the function run_block(parameters, block) of a generated kernel.

    sources_digest: digest of the included sources. Returns None, with a warning, if there is no compiler or it fails.
    """
    provided = _provided.get(library_key(name, source, target, sources_digest))
    if provided is not None:
        # A library of a machine with another C library cannot be loaded: this machine compiles it again.
        with suppress(OSError):
            return _loaded(provided)
    made = compiled_library(name, source, folders, target, sources_digest)
    if made is None:
        return None
    content, path = made
    return _loaded(content) if path is None else ctypes.CDLL(str(path))


def compiled_library(
    name: str, source: str, folders: Sequence[Path], target: str, sources_digest: str
) -> tuple[bytes, Path | None] | None:
    """The content of this library, and its file in the cache, if there is one; otherwise as `compile_kernel`."""
    found = compiler()
    if found is None:
        warnings.warn("no C++ compiler (g++, clang++): NumPy evaluates the lines, which is slower", stacklevel=3)
        return None
    unit = kernel_unit(name, source)
    options = (*OPTIONS, *TARGET_OPTIONS[target], *(f"-I{folder}" for folder in folders))
    try:
        cache = cache_folder()
        path = None if cache is None else cache / f"{key_of((unit, sources_digest, *options, _version(found)))}.so"
        if (content := read_cached(path)) is not None:
            return content, path
        with tempfile.TemporaryDirectory(prefix="hltnode-lines-") as folder:
            made = Path(folder) / "kernel.so"
            text = Path(folder) / "kernel.cpp"
            text.write_text(unit)
            command = [found, *options, str(text), "-o", str(made)]
            with compiling(cached=path is not None):
                subprocess.run(command, check=True, capture_output=True, text=True, timeout=TIMEOUT)
            content = made.read_bytes()
        return content, path if write_cached(path, content) else None
    except (OSError, subprocess.SubprocessError) as error:
        log = getattr(error, "stderr", None) or ""
        warnings.warn(
            f"{found} failed to compile the lines; NumPy evaluates them, which is slower: {error}\n{log}",
            stacklevel=3,
        )
        return None


def _loaded(content: bytes) -> ctypes.CDLL:
    """The library; its file may be removed while it is loaded. Raises OSError."""
    with tempfile.NamedTemporaryFile(prefix="hltnode-lines-", suffix=".so") as file:
        file.write(content)
        file.flush()
        return ctypes.CDLL(file.name)
