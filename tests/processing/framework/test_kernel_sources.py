"""The digest of a chain covers exactly the files that its kernels include."""

from __future__ import annotations

import shutil
import subprocess
import sys
from pathlib import Path

import pytest

from hltnode.processing.framework import kernel_sources
from hltnode.processing.framework.backends.interface import BackendError
from hltnode.processing.framework.backends.kernel_library import KernelLibrary
from hltnode.processing.framework.collections import PROCESSING
from hltnode.processing.framework.kernel_sources import KernelSources, MissingSourceError, included_files
from hltnode.processing.lhcb.chain import CHAIN

FILES = {
    "one/generated/chain_kernels.h": '#include "one/search.cuh"\n#if defined(HLT_WITH_CPU_FORMS)\n'
    '#include "one/search_cpu.h"\n#endif\n',
    "one/search.cuh": '#pragma once\n#include "common/float3.cuh"\n# include "one/constants.h"  // indented\n',
    "one/search_cpu.h": '#include "beside.h"\n',
    "one/beside.h": "",
    "one/constants.h": '#if 0\n#include "one/only_on_a_gpu.cuh"\n#endif\n',
    "one/only_on_a_gpu.cuh": "#include <cstdint>\n",
    "one/included_by_none.cuh": "",
    "common/float3.cuh": '#include "one/constants.h"\n',
    "other/generated/chain_kernels.h": '#include "other/fit.cuh"\n',
    "other/fit.cuh": '#include "common/float3.cuh"\n',
}


@pytest.fixture
def one(tmp_path: Path) -> KernelSources:
    """The chain `one`, in a folder with two chains."""
    for name, text in FILES.items():
        (tmp_path / name).parent.mkdir(parents=True, exist_ok=True)
        (tmp_path / name).write_text(text)
    return KernelSources("one/generated/chain_kernels.h", (PROCESSING, tmp_path), "")


def test_the_files_are_those_that_the_list_and_the_sources_of_the_library_include(one: KernelSources) -> None:
    names = [file.name for file in included_files(one.header, one.folders)]
    below = sorted(name for name in FILES if not name.startswith("other/") and name != "one/included_by_none.cuh")
    of_the_library = [f"framework/backends/{name}" for name in ("cpu_kernels.cpp", "cpu_library.cpp", "cpu_target.h")]
    assert names == sorted([*below, *of_the_library])


@pytest.mark.parametrize(
    ("changed", "counts"),
    [
        ("one/search.cuh", True),
        ("one/generated/chain_kernels.h", True),
        ("one/search_cpu.h", True),
        ("one/beside.h", True),
        ("one/only_on_a_gpu.cuh", True),
        ("common/float3.cuh", True),
        ("one/included_by_none.cuh", False),
        ("other/fit.cuh", False),
        ("other/generated/chain_kernels.h", False),
        ("other/new.cuh", False),
    ],
)
def test_a_change_of_a_file_counts_if_the_chain_includes_it(
    one: KernelSources, tmp_path: Path, changed: str, counts: bool
) -> None:
    before = one.digest()
    with (tmp_path / changed).open("a") as file:
        file.write("// changed\n")
    assert (one.digest() != before) == counts


def test_a_change_of_the_library_around_the_kernels_counts(
    one: KernelSources, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    before = one.digest()
    backends = Path(shutil.copytree(kernel_sources.BACKENDS, tmp_path / "framework" / "backends"))
    moved = KernelSources(one.header, (tmp_path,), "")
    monkeypatch.setattr(kernel_sources, "LIBRARY_SOURCES", (backends / "cpu_kernels.cpp", backends / "cpu_library.cpp"))
    assert moved.digest() == before, "the folder of a package must not count"
    with (backends / "cpu_target.h").open("a") as file:
        file.write("// changed\n")
    assert moved.digest() != before


def test_what_a_generated_source_includes_counts(one: KernelSources, tmp_path: Path) -> None:
    source = '#include "other/fit.cuh"\nvoid line();'
    before = one.digest(source)
    assert before != one.digest()
    (tmp_path / "other" / "fit.cuh").write_text("// changed")
    assert one.digest(source) != before


def test_names_and_contents_are_told_apart(one: KernelSources, tmp_path: Path) -> None:
    before = one.digest()
    text = (tmp_path / "one" / "only_on_a_gpu.cuh").read_text()
    (tmp_path / "one" / "constants.h").write_text(FILES["one/constants.h"] + text)
    (tmp_path / "one" / "only_on_a_gpu.cuh").write_text("")
    assert one.digest() != before


def test_a_missing_include_is_named_with_the_file_that_includes_it(one: KernelSources, tmp_path: Path) -> None:
    (tmp_path / "one" / "beside.h").unlink()
    with pytest.raises(MissingSourceError, match=r'one/search_cpu\.h includes "beside\.h", which is in none of'):
        one.digest()
    (tmp_path / one.header).unlink()
    with pytest.raises(MissingSourceError, match=r'the library includes "one/generated/chain_kernels\.h"'):
        one.digest()


def test_a_library_without_its_sources_is_refused(tmp_path: Path) -> None:
    kernels = KernelSources("nowhere.h", CHAIN.kernels.folders, CHAIN.kernels.library)
    with pytest.raises(BackendError, match=r'sources of the compiled kernels in .* are incomplete: .* "nowhere\.h"'):
        KernelLibrary(kernels)


def run_by_the_build(header: str, *folders: Path) -> subprocess.CompletedProcess[str]:
    """Run the command of CMake without site-packages, because a build does not have the dependencies."""
    command = [sys.executable, "-I", "-S", kernel_sources.__file__, header, *map(str, folders)]
    return subprocess.run(command, capture_output=True, text=True, check=False)


def test_the_build_gets_the_digest_that_the_node_computes(one: KernelSources, tmp_path: Path) -> None:
    digest, *paths = run_by_the_build(one.header, *one.folders).stdout.splitlines()
    assert digest == one.digest()
    assert paths == [file.path for file in included_files(one.header, one.folders)]
    assert str(tmp_path / "one" / "search.cuh") in paths


def test_the_build_fails_with_the_name_of_a_missing_include(one: KernelSources, tmp_path: Path) -> None:
    (tmp_path / "one" / "constants.h").unlink()
    done = run_by_the_build(one.header, *one.folders)
    assert done.returncode == 1
    assert '"one/constants.h"' in done.stderr
    assert done.stdout == ""


def test_every_chain_include_is_found_in_the_package() -> None:
    names = {file.name for file in included_files(CHAIN.kernels.header, CHAIN.kernels.folders)}
    assert {"framework/device/platform.cuh", "framework/backends/cpu_target.h"} <= names
    listed = {f.relative_to(PROCESSING).as_posix() for a in CHAIN.algorithms for f in (a.source, a.header)}
    assert listed <= names
