"""docs/how-to/write-an-algorithm.md works, followed literally in a copy of the sources."""

from __future__ import annotations

import importlib.util
import os
import re
import shutil
import subprocess
import sys
from pathlib import Path

import pytest

ROOT = Path(__file__).resolve().parents[2]
PAGE = (ROOT / "docs" / "how-to" / "write-an-algorithm.md").read_text(encoding="utf-8")

FILES = {
    path: text for path, _, text in re.findall(r"^`([^`\n]+)`:\n\n```(python|cpp)\n(.*?)^```$", PAGE, re.DOTALL | re.M)
}
"""The parts of files that the page shows, by path."""
DECLARATION, KERNEL, HEADER, TEST = FILES
KERNEL_LIST = "processing/lhcb/generated/chain_kernels.h"
DIFFS = re.findall(r"^```diff\n(.*?)^```$", PAGE, re.DOTALL | re.M)
(REFUSAL,) = re.findall(r"^```text\n(.*?)\n```$", PAGE, re.DOTALL | re.M)

EXTENSIONS = {
    "protocol": "hltnode.protocol._native",
    "processing/framework/backends": "hltnode.processing.framework.backends._executor",
}
"""Extension modules that the page does not rebuild, by folder."""

# An editable install finds modules of the package by its own hook, before it reads PYTHONPATH.
WITHOUT_HOOK = """
import runpy, sys
sys.meta_path[:] = [f for f in sys.meta_path if type(f).__name__ != "ScikitBuildRedirectingFinder"]
sys.argv[:] = sys.argv[1:]
"""
RUN_FILE = WITHOUT_HOOK + "runpy.run_path(sys.argv[0], run_name='__main__')"
RUN_MODULE = WITHOUT_HOOK + "runpy.run_module(sys.argv[0], run_name='__main__', alter_sys=True)"
BUILD = """
import sys; sys.path.insert(0, ".")
from dataclasses import replace
from hltnode.processing.framework.collections import PROCESSING
from hltnode.processing.lhcb.chain import CHAIN
from tests.processing.framework.chain_builder import build_kernels
build_kernels(replace(CHAIN.kernels, library=str(PROCESSING / "lhcb" / "_chain_kernels.so")), optimize="-O0")
"""

pytestmark = pytest.mark.skipif(
    shutil.which("c++") is None and shutil.which("g++") is None, reason="no C++ compiler: nothing can be built"
)


def with_the_kernel_of_the_page_alone(listed: str) -> str:
    """The generated list of kernels, shortened to that of the page: the others are not built again for one test."""
    (name,) = re.findall(r"^HLT_KERNEL\((\w+)\)", FILES[KERNEL], re.M)
    kernels, forms = listed.split("#if defined(HLT_WITH_CPU_FORMS)")
    includes, entries = kernels.split("#define HLT_KERNELS(X)")
    (include,) = re.findall(rf'^#include ".*/{Path(KERNEL).stem}\.cuh"$', includes, re.M)
    assert f"X({name})" in entries
    assert f"X({name})" not in forms
    return f"#pragma once\n{include}\n#define HLT_KERNELS(X) X({name})\n"


class Copy:
    """A tree in which the package is imported from a copy of its sources."""

    def __init__(self, root: Path) -> None:
        self.root = root
        self.package = root / "hltnode"
        ignored = shutil.ignore_patterns("__pycache__")
        shutil.copytree(ROOT / "library" / "hltnode", self.package, ignore=ignored)
        for name in ("processing", "protocol"):
            shutil.copytree(ROOT / name, self.package / name, ignore=ignored)
        shutil.copytree(ROOT / "tests" / "processing" / "framework", root / "tests" / "processing" / "framework")
        shutil.copytree(ROOT / "tools", root / "tools", ignore=ignored)
        for name in ("pyproject.toml", "tests/__init__.py", "tests/conftest.py"):
            shutil.copy(ROOT / name, root / name)
        for folder, module in EXTENSIONS.items():
            spec = importlib.util.find_spec(module)
            assert spec is not None
            assert spec.origin is not None
            shutil.copy(spec.origin, self.package / folder)

    def path(self, name: str) -> Path:
        """Path of a file of the repository in the copy."""
        return self.root / name if name.startswith("tests/") else self.package / name

    def write(self, name: str, text: str) -> None:
        """Write a file of the page into the copy."""
        path = self.path(name)
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(text)

    def apply(self, diff: str) -> None:
        """Insert the lines marked with + after the line that precedes them."""
        path = self.path("processing/lhcb/chain.py")
        before, new = diff.splitlines()
        assert before.startswith(" ")
        assert new.startswith("+")
        text = path.read_text()
        assert text.count(before[1:] + "\n") == 1
        path.write_text(text.replace(before[1:] + "\n", f"{before[1:]}\n{new[1:]}\n"))

    def python(self, *arguments: str) -> subprocess.CompletedProcess[str]:
        """Run Python in the copy."""
        return subprocess.run(
            [sys.executable, "-c", *arguments],
            cwd=self.root,
            env={**os.environ, "PYTHONPATH": str(self.root)},
            capture_output=True,
            text=True,
        )

    def check(self, *arguments: str) -> str:
        """Run Python in the copy; fails if its exit status is not 0."""
        done = self.python(*arguments)
        assert done.returncode == 0, done.stdout + done.stderr
        return done.stdout


@pytest.fixture(scope="module")
def copy(tmp_path_factory: pytest.TempPathFactory) -> Copy:
    """The copy after step 4 of the page."""
    copy = Copy(tmp_path_factory.mktemp("copy"))
    for name in (DECLARATION, KERNEL, TEST):
        copy.write(name, FILES[name])
    for diff in DIFFS:
        copy.apply(diff)
    copy.check(RUN_MODULE, "tools.generate_device_headers")
    return copy


def test_the_page_shows_the_header_that_is_generated(copy: Copy) -> None:
    assert copy.path(HEADER).read_text() == FILES[HEADER]


def test_only_two_files_the_sequence_and_generated_headers_differ(copy: Copy) -> None:
    changed = {
        path.relative_to(copy.package).as_posix()
        for path in copy.package.rglob("*")
        if path.suffix in {".py", ".cuh", ".h", ".cpp"}
        and path != copy.package / "__init__.py"
        and (
            not (ROOT / path.relative_to(copy.package)).is_file()
            or (ROOT / path.relative_to(copy.package)).read_bytes() != path.read_bytes()
        )
    }
    by_hand = {DECLARATION, KERNEL, "processing/lhcb/chain.py"}
    assert changed == by_hand | {HEADER, KERNEL_LIST}


@pytest.mark.timeout(300)
def test_the_test_of_the_page_passes_with_the_kernel_of_the_page(copy: Copy) -> None:
    listed = copy.path(KERNEL_LIST)
    whole = listed.read_text()
    listed.write_text(with_the_kernel_of_the_page_alone(whole))
    try:
        copy.check(WITHOUT_HOOK + BUILD, "build")
        output = copy.check(RUN_MODULE, "pytest", "-q", "-p", "no:cacheprovider", TEST)
    finally:
        listed.write_text(whole)
    assert "5 passed" in output


def test_a_sequence_in_the_wrong_order_is_refused_as_the_page_says(copy: Copy) -> None:
    sequence = copy.path("processing/lhcb/chain.py")
    text = sequence.read_text()
    entries = "    kalman_filter,\n    track_isolation,\n"
    assert entries in text
    sequence.write_text(text.replace(entries, "    track_isolation,\n    kalman_filter,\n"))
    try:
        done = copy.python(WITHOUT_HOOK + "import hltnode.processing.lhcb.chain", "import")
    finally:
        sequence.write_text(text)
    assert done.returncode == 1
    assert REFUSAL in done.stderr


def test_the_page_names_targets_that_the_makefile_has() -> None:
    (commands,) = re.findall(r"^```sh\n(.*?)^```$", PAGE, re.DOTALL | re.M)
    makefile = (ROOT / "Makefile").read_text()
    for command in commands.splitlines():
        program, target = command.split()
        assert program == "make"
        assert re.search(rf"^{target}:", makefile, re.M)
