"""Compiles generated kernels for the CPU with the C++ compiler of this machine, and caches them on disk.

The options give the same rounding as those of the other kernels (CMakeLists.txt): no contraction to FMA.
"""

import ctypes
import shutil
import subprocess
import tempfile
import warnings
from collections.abc import Sequence
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


def compile_kernel(
    name: str, source: str, folders: Sequence[Path], target: str, sources_digest: str
) -> ctypes.CDLL | None:
    """A library with the function run_block(parameters, block) of a generated kernel.

    sources_digest: digest of the included sources. Returns None, with a warning, if there is no compiler or it fails.
    """
    found = compiler()
    if found is None:
        warnings.warn("no C++ compiler (g++, clang++): NumPy evaluates the lines, which is slower", stacklevel=2)
        return None
    unit = kernel_unit(name, source)
    options = (*OPTIONS, *TARGET_OPTIONS[target], *(f"-I{folder}" for folder in folders))
    try:
        cache = cache_folder()
        path = None if cache is None else cache / f"{key_of((unit, sources_digest, *options, _version(found)))}.so"
        if read_cached(path) is not None:
            return ctypes.CDLL(str(path))
        with tempfile.TemporaryDirectory(prefix="hltnode-lines-") as folder:
            made = Path(folder) / "kernel.so"
            text = Path(folder) / "kernel.cpp"
            text.write_text(unit)
            command = [found, *options, str(text), "-o", str(made)]
            with compiling(cached=path is not None):
                subprocess.run(command, check=True, capture_output=True, text=True, timeout=TIMEOUT)
            return ctypes.CDLL(str(path if write_cached(path, made.read_bytes()) else made))
    except (OSError, subprocess.SubprocessError) as error:
        log = getattr(error, "stderr", None) or ""
        warnings.warn(
            f"{found} failed to compile the lines; NumPy evaluates them, which is slower: {error}\n{log}",
            stacklevel=2,
        )
        return None
