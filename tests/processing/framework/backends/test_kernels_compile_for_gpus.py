"""Every kernel compiles for every supported GPU architecture, with the function that the back end uses."""

from __future__ import annotations

import re
from collections import Counter
from dataclasses import replace
from pathlib import Path
from types import ModuleType

import pytest

from hltnode.processing.framework.backends.cuda_kernels import (
    cached_kernels,
    compile_kernels,
    compile_options,
    compiler_version,
    translation_unit,
)
from hltnode.processing.framework.backends.interface import BackendError
from hltnode.processing.framework.collections import PROCESSING
from hltnode.processing.framework.kernel_sources import KernelSources
from hltnode.processing.lhcb.chain import CHAIN
from tests.processing.framework.nvrtc_library import nvrtc_of
from tests.ptx.nvrtc import ptx_of, ptx_of_source

ARCHITECTURES = {13: (75, 80, 86, 89, 90, 100, 120), 12: (70, 75, 90)}
"""CUDA 13 dropped 70; CUDA 12 still supports it."""


@pytest.mark.timeout(300)
@pytest.mark.expensive("compiles every kernel once more")
def test_the_older_compiler_makes_ptx_of_every_kernel_for_the_oldest_architecture() -> None:
    """Only the front end can refuse a kernel for this architecture, because no kernel contains assembly.

    The newer compiler compiles every kernel for 90, with ptxas, in tests/ptx/test_resources.py, and tests of tests/ptx
    compile parts for 80, 90 and 100. The only condition on an architecture (platform.cuh) separates those before 80
    from the others.
    """
    ptx = ptx_of_source(nvrtc_of(12), translation_unit(CHAIN.kernels), "70", *compile_options(CHAIN.kernels))
    kernels = set(re.findall(r"^\.visible \.entry (\w+)\(", ptx, re.MULTILINE))
    assert kernels == {algorithm.name for algorithm in CHAIN.algorithms}
    assert not [path for path in PROCESSING.rglob("*.cuh") if re.search(r"\basm\b", path.read_text())]


@pytest.mark.slow
@pytest.mark.timeout(300)
@pytest.mark.parametrize(
    ("cuda_version", "architecture"),
    [(version, name) for version, architectures in ARCHITECTURES.items() for name in architectures],
)
def test_every_kernel_compiles(cuda_version: int, architecture: int) -> None:
    cubin = compile_kernels(nvrtc_of(cuda_version), CHAIN.kernels, architecture)
    for algorithm in CHAIN.algorithms:
        assert algorithm.name.encode() in cubin


def test_the_kernel_of_a_second_chain_compiles(tiny: ModuleType) -> None:
    assert b"tiny_count_hits" in compile_kernels(nvrtc_of(13), tiny.TINY.kernels, 90)


def chain_of(folder: Path, kernel: str) -> KernelSources:
    """A chain of one kernel."""
    (folder / "list.h").write_text(kernel)
    return KernelSources("list.h", (folder,), "no library")


FLOATS = """
extern "C" __global__ void floats(float* values)
{
    values[0] = values[1] * values[2] + values[3];
    values[4] = values[5] / values[6];
    values[7] = sqrtf(values[8]);
}
"""


@pytest.mark.parametrize("cuda_version", [12, 13])
def test_floats_are_rounded_as_on_the_cpu(cuda_version: int, tmp_path: Path) -> None:
    ptx = ptx_of(nvrtc_of(cuda_version), chain_of(tmp_path, FLOATS), "90")
    assert {"mul.rn.f32", "add.rn.f32", "div.rn.f32", "sqrt.rn.f32"} <= set(ptx.split())
    assert not {"fma", "ftz", "approx"} & {part for word in ptx.split() for part in word.split(".")}


def ptx_of_hlt1() -> str:
    return ptx_of(nvrtc_of(13), CHAIN.kernels, "90")


@pytest.mark.timeout(300)
def test_no_kernel_flushes_denormal_numbers() -> None:
    ptx = ptx_of_hlt1()
    assert ".rn.f32" in ptx
    assert ".ftz" not in ptx
    assert "fma." not in ptx


@pytest.mark.timeout(300)
def test_kernels_know_that_their_columns_are_in_global_memory() -> None:
    accesses = Counter(re.findall(r"\b(?:ld|st|atom|red)\.(?:v[24]\.)?(\w+)", ptx_of_hlt1()))
    assert accesses["global"] > 500
    known = sum(accesses[space] for space in ("global", "shared", "local", "param", "const"))
    # If a kernel takes an address from one of two columns, or from its own memory, the compiler does not know which.
    assert accesses.total() - known < 0.02 * accesses["global"]


def test_what_the_compiler_says_is_in_the_error(tmp_path: Path) -> None:
    kernels = chain_of(tmp_path, 'extern "C" __global__ void broken(float* values) { values[0] = no_such_name; }')
    with pytest.raises(BackendError, match=r"NVRTC 13\.\d+ cannot compile .*--ftz=false.*\n(.*\n)*.*no_such_name"):
        compile_kernels(nvrtc_of(13), kernels, 90)


def test_a_kernel_with_more_shared_memory_than_a_device_has_is_refused_by_name(tmp_path: Path) -> None:
    kernels = chain_of(
        tmp_path,
        """
        extern "C" __global__ void greedy(unsigned* out)
        {
            __shared__ unsigned much[16384];
            much[threadIdx.x] = out[threadIdx.x];
            __syncthreads();
            out[threadIdx.x] = much[threadIdx.x ^ 1];
        }
        """,
    )
    with pytest.raises(BackendError, match=r"greedy.*uses too much shared data \(0x10000 bytes"):
        compile_kernels(nvrtc_of(13), kernels, 90)


def test_an_architecture_that_the_compiler_does_not_know_is_refused(tmp_path: Path) -> None:
    with pytest.raises(BackendError, match=r"cannot compile .*sm_70"):
        compile_kernels(nvrtc_of(13), chain_of(tmp_path, FLOATS), 70)


def test_the_cache_gives_back_what_was_compiled(tmp_path: Path) -> None:
    nvrtc, kernels, folder = nvrtc_of(13), chain_of(tmp_path, FLOATS), tmp_path / "made" / "cache"
    cubin = cached_kernels(nvrtc, kernels, 90, folder)
    assert cubin == compile_kernels(nvrtc, kernels, 90)
    [file] = folder.iterdir()
    time = file.stat().st_mtime_ns
    assert cached_kernels(nvrtc, kernels, 90, folder) == cubin
    assert [path.stat().st_mtime_ns for path in folder.iterdir()] == [time]


def test_the_cache_tells_sources_architectures_and_compilers_apart(tmp_path: Path) -> None:
    kernels, folder = chain_of(tmp_path, FLOATS), tmp_path / "cache"
    first = cached_kernels(nvrtc_of(13), kernels, 90, folder)
    assert cached_kernels(nvrtc_of(13), kernels, 80, folder) != first
    assert cached_kernels(nvrtc_of(12), kernels, 90, folder) != first
    (tmp_path / "list.h").write_text(FLOATS.replace("values[3]", "values[9]"))
    assert cached_kernels(nvrtc_of(13), kernels, 90, folder) != first
    assert len(list(folder.iterdir())) == 4
    assert compiler_version(nvrtc_of(12)) != compiler_version(nvrtc_of(13))


@pytest.mark.parametrize("damage", [b"", b"short", bytes(100)])
def test_a_damaged_file_of_the_cache_is_made_again(tmp_path: Path, damage: bytes) -> None:
    nvrtc, kernels, folder = nvrtc_of(13), chain_of(tmp_path, FLOATS), tmp_path / "cache"
    cubin = cached_kernels(nvrtc, kernels, 90, folder)
    [file] = folder.iterdir()
    whole = file.read_bytes()
    file.write_bytes(damage)
    assert cached_kernels(nvrtc, kernels, 90, folder) == cubin
    assert file.read_bytes() == whole


def test_a_cache_that_cannot_be_written_costs_a_warning(tmp_path: Path) -> None:
    kernels, folder = chain_of(tmp_path, FLOATS), tmp_path / "a file"
    folder.write_text("no folder")
    with pytest.warns(UserWarning, match="each start compiles them again: .*a file"):
        assert cached_kernels(nvrtc_of(13), kernels, 90, folder) == compile_kernels(nvrtc_of(13), kernels, 90)


def test_a_header_in_any_folder_of_a_chain_counts_for_its_cache(tmp_path: Path) -> None:
    (tmp_path / "other").mkdir()
    (tmp_path / "other" / "floats.cuh").write_text(FLOATS)
    kernels = replace(chain_of(tmp_path, '#include "floats.cuh"\n'), folders=(tmp_path, tmp_path / "other"))
    cached_kernels(nvrtc_of(13), kernels, 90, tmp_path / "cache")
    (tmp_path / "other" / "floats.cuh").write_text(FLOATS.replace("values[3]", "values[9]"))
    cached_kernels(nvrtc_of(13), kernels, 90, tmp_path / "cache")
    assert len(list((tmp_path / "cache").iterdir())) == 2
