"""Builds the kernels of a test chain with the compiler of this machine; the package does not contain test chains."""

from __future__ import annotations

import importlib.util
import shutil
import subprocess
from pathlib import Path

import pytest

from hltnode.processing.framework.chain import Chain
from hltnode.processing.framework.collections import PROCESSING
from hltnode.processing.framework.kernel_sources import KernelSources
from tests.processing.framework.build_cache import built, version_of

BACKENDS = PROCESSING / "framework" / "backends"


def compiler() -> str:
    """The C++ compiler; skips the test if there is none."""
    found = shutil.which("c++") or shutil.which("g++")
    if found is None:
        pytest.skip("no C++ compiler: the kernels of this test cannot be built")
    return found


def write_headers(chain: Chain) -> None:
    """Write the headers of a chain that are missing or out of date."""
    for path, text in chain.headers.items():
        if not path.is_file() or path.read_text() != text:
            path.parent.mkdir(exist_ok=True)
            path.write_text(text)


def build_kernels(kernels: KernelSources, optimize: str = "-O2", *more: str) -> None:
    """Compile kernels for the baseline instruction set, with all CPU forms, into the shared library that they name.

    more: further arguments of the compiler; the content of a file counts, not its name. If the same sources were built
    with the same arguments before, the library is a copy of that one."""
    command = [compiler(), "-std=c++17", optimize, "-ffp-contract=off", "-fno-math-errno", "-shared", "-fPIC", *more]
    # Vectors are passed between functions of one file only, so their binary interface does not matter.
    command += [
        "-Wall",
        "-Wextra",
        "-Wundef",
        "-Werror",
        "-Wno-unknown-pragmas",
        "-Wno-psabi",
        "-DHLT_TARGET=baseline",
        "-DHLT_EVERY_CPU_FORM",
    ]
    command += [f'-DHLT_KERNEL_LIST="{kernels.header}"', f'-DHLT_KERNEL_DIGEST="{kernels.digest()}"']
    # The digest stands for all sources, these two included.
    parts = [Path(part).read_bytes() if Path(part).is_file() else part for part in command[1:]]
    command += [f"-I{folder}" for folder in kernels.folders]
    command += [str(BACKENDS / "cpu_library.cpp"), str(BACKENDS / "cpu_kernels.cpp")]

    def compile_library(path: Path) -> None:
        subprocess.run([*command, "-o", str(path)], check=True)

    library = built("kernels.so", [version_of(command[0]), *parts], compile_library)
    target = _library_file(kernels)
    target.unlink(missing_ok=True)
    shutil.copy(library, target)
    importlib.invalidate_caches()


def _library_file(kernels: KernelSources) -> Path:
    """The path itself, or the path of the module with this name."""
    if kernels.library.endswith(".so"):
        return Path(kernels.library)
    package, _, module = kernels.library.rpartition(".")
    spec = importlib.util.find_spec(package)
    assert spec is not None
    assert spec.origin is not None
    return Path(spec.origin).parent / f"{module}.so"


def build_chain(chain: Chain, optimize: str = "-O2") -> None:
    """Write the headers, then compile the kernels."""
    write_headers(chain)
    build_kernels(chain.kernels, optimize)


def copy_package(source: Path, root: Path, name: str) -> Path:
    """Copy a package of declarations and kernels, to be imported as `name` from the folder `root`."""
    return Path(shutil.copytree(source, root / name, ignore=shutil.ignore_patterns("__pycache__", "generated")))
