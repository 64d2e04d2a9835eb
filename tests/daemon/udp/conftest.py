"""The joiner, compiled once in a session of tests with sanitizers."""

import os
import shutil
import subprocess
from pathlib import Path

import pytest

ROOT = Path(__file__).resolve().parents[3]
SANITIZERS = ("-O0", "-g1", "-fsanitize=address,undefined", "-fno-sanitize-recover=all")
WARNINGS = ("-Wall", "-Wextra", "-Werror")


@pytest.fixture(scope="session")
def joiner(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The program of joiner.cpp: an error of memory or arithmetic ends it."""
    program = tmp_path_factory.mktemp("joiner") / "joiner"
    compiler = os.environ.get("CXX") or shutil.which("c++") or shutil.which("g++") or shutil.which("clang++")
    assert compiler, "no C++ compiler; hltnode itself needs one to be built"
    sources = (
        Path(__file__).with_name("joiner.cpp"),
        ROOT / "daemon/udp/packet_joiner.cpp",
        ROOT / "protocol/crc32c.cpp",
    )
    done = subprocess.run(
        [*compiler.split(), "-std=c++17", *WARNINGS, *SANITIZERS, *map(str, sources), "-o", str(program)],
        check=False,
        timeout=500,
        capture_output=True,
        text=True,
    )
    assert done.returncode == 0, done.stderr
    return program
