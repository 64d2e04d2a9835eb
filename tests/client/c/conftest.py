"""The C library, compiled once in a session of tests: installed, and with sanitizers in a driver."""

import os
import re
import shutil
import subprocess
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest
import zmq

ROOT = Path(__file__).resolve().parents[3]
LIBRARY = ROOT / "client" / "c"
WARNINGS = ("-Wall", "-Wextra", "-Wpedantic", "-Wconversion", "-Werror")
SANITIZERS = ("-O1", "-g", "-fsanitize=address,undefined", "-fno-sanitize-recover=all")

Start = Callable[..., subprocess.Popen[str]]


def loaded_libzmq() -> Path:
    """The libzmq that pyzmq uses in this process: its own, or that of the system."""
    with Path("/proc/self/maps").open() as maps:
        found = {line.split(maxsplit=5)[5].strip() for line in maps if re.search(r"/libzmq[^/]*\.so", line)}
    assert found, f"pyzmq {zmq.pyzmq_version()} has no shared libzmq to link with: it was built with a static one"
    return Path(found.pop())


def compiler(variable: str, *names: str) -> list[str]:
    found = os.environ.get(variable) or next(filter(None, map(shutil.which, names)), None)
    assert found, f"no compiler ({', '.join(names)}); hltnode itself needs one to be built"
    return found.split()


def linked_with_libzmq() -> list[str]:
    library = loaded_libzmq()
    return [str(library), f"-Wl,-rpath,{library.parent}", "-pthread"]


def run(*command: str | Path, cwd: Path | None = None) -> str:
    done = subprocess.run(
        list(map(str, command)), cwd=cwd, check=False, timeout=170, text=True, stdout=subprocess.PIPE,
        stderr=subprocess.STDOUT,
    )  # fmt: skip
    assert done.returncode == 0, done.stdout
    return done.stdout


@pytest.fixture(scope="session")
def driver(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The driver with the library in it, with sanitizers: an error of memory or arithmetic ends it."""
    program = tmp_path_factory.mktemp("c-driver") / "driver"
    run(
        *compiler("CC", "cc", "gcc", "clang"), "-std=c11", *WARNINGS, *SANITIZERS, "-I", LIBRARY,
        Path(__file__).with_name("driver.c"), "-o", program, *linked_with_libzmq(),
    )  # fmt: skip
    return program


@pytest.fixture
def start(driver: Path) -> Iterator[Start]:
    """Starts the driver with a data endpoint, a control endpoint and options."""
    feeders: list[subprocess.Popen[str]] = []

    def started(*arguments: object) -> subprocess.Popen[str]:
        feeder = subprocess.Popen(
            [str(driver), *map(str, arguments)], stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True
        )
        feeders.append(feeder)
        return feeder

    yield started
    for feeder in feeders:
        if feeder.poll() is None:
            feeder.kill()
        feeder.communicate()
