"""Only platform.cuh tests which compiler builds a kernel; all other sources test HLT_ON_GPU."""

from __future__ import annotations

import re
from pathlib import Path

import pytest

ROOT = Path(__file__).resolve().parents[2]

PLATFORM = "processing/framework/device/platform.cuh"
PACKAGES = ("processing", "protocol", "client", "daemon")
SUFFIXES = {".py", ".cuh", ".cpp", ".h"}

CONDITION = re.compile(r"\s*#\s*(?:if|elif|ifdef|ifndef)\b")
COMPILER = re.compile(r"\b(?:__CUDACC\w*|__NVCC__)")
ARCHITECTURE, COMPARED_ARCHITECTURE = re.compile(r"\b__CUDA_ARCH__\b"), re.compile(r"\b__CUDA_ARCH__ *[<>=]")
UNVALUED = re.compile(r"ifn?def\s+HLT_ON_GPU\b|\bdefined\b *\(? *HLT_ON_GPU\b")


def is_raw(line: str) -> bool:
    """Whether a condition names a compiler, names an architecture without a number, or tests if HLT_ON_GPU is
    defined."""
    if not CONDITION.match(line):
        return False
    names_back_end = bool(ARCHITECTURE.search(line)) and not COMPARED_ARCHITECTURE.search(line)
    return bool(COMPILER.search(line)) or names_back_end or bool(UNVALUED.search(line))


def raw_conditions(text: str) -> list[int]:
    """Line numbers of such conditions."""
    return [number for number, line in enumerate(text.splitlines(), 1) if is_raw(line)]


def test_no_other_source_asks_which_compiler_builds_it() -> None:
    found = []
    for path in sorted(path for package in PACKAGES for path in (ROOT / package).rglob("*")):
        name = path.relative_to(ROOT).as_posix()
        if path.suffix in SUFFIXES and name != PLATFORM:
            found += [f"{name}:{line}" for line in raw_conditions(path.read_text())]
    assert found == []


@pytest.mark.parametrize(
    "line",
    [
        "#if defined(__CUDACC__) || defined(__CUDACC_RTC__)",
        "#if !defined(__CUDACC__)",
        "#ifdef __CUDACC_RTC__",
        "# ifndef __NVCC__",
        "#elif defined(__CUDACC__)",
        "#ifdef __CUDA_ARCH__",
        "#if defined(__CUDA_ARCH__)",
        "#ifdef HLT_ON_GPU",
        "#if defined(HLT_ON_GPU) && defined(HLT_AVX512)",
    ],
)
def test_raw_conditions_are_found(line: str) -> None:
    assert raw_conditions(f"#pragma once\n{line}\n") == [2]


@pytest.mark.parametrize(
    "line", ["#if HLT_ON_GPU", "#if !HLT_ON_GPU", "#if defined(__CUDA_ARCH__) && __CUDA_ARCH__ < 800"]
)
def test_conditions_of_other_sources_are_allowed(line: str) -> None:
    assert raw_conditions(line) == []
