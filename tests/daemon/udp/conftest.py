"""The joiner with sanitizers, compiled once for its sources and kept below build/."""

import os
import shutil
import subprocess
from pathlib import Path

import pytest

from tests.processing.framework.build_cache import built, version_of

ROOT = Path(__file__).resolve().parents[3]
OPTIONS = (
    *("-std=c++17", "-Wall", "-Wextra", "-Werror"),
    *("-O0", "-g1", "-fsanitize=address,undefined", "-fno-sanitize-recover=all"),
)


@pytest.fixture(scope="session")
def joiner() -> Path:
    """The program of joiner.cpp: an error of memory or arithmetic ends it."""
    found = os.environ.get("CXX") or shutil.which("c++") or shutil.which("g++") or shutil.which("clang++")
    assert found, "no C++ compiler; hltnode itself needs one to be built"
    compiler = found.split()
    sources = (
        Path(__file__).with_name("joiner.cpp"),
        ROOT / "daemon/udp/packet_joiner.cpp",
        ROOT / "protocol/crc32c.cpp",
    )
    headers = sorted((*(ROOT / "daemon/udp").glob("*.h"), *(ROOT / "protocol").glob("*.h")))

    def make(program: Path) -> None:
        command = [*compiler, *OPTIONS, *map(str, sources), "-o", str(program)]
        done = subprocess.run(command, check=False, capture_output=True, text=True)
        assert done.returncode == 0, done.stderr

    contents = [each.read_bytes() for each in (*sources, *headers)]
    parts: list[str | bytes] = [*compiler, version_of(compiler[0]), *OPTIONS, *contents]
    return built("joiner", parts, make)
