"""The tutorial does what it says: its commands, in its order, give the output that it shows."""

import os
import re
import shlex
import shutil
import signal
import subprocess
import sys
import time
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

import pytest

from tests.own_ports import OwnPorts

# Eighteen processes one after the other: seconds on a free machine, more than the usual limit on a loaded one.
pytestmark = [pytest.mark.process, pytest.mark.loopback, pytest.mark.timeout(300)]

ROOT = Path(__file__).resolve().parents[2]
PAGE = ROOT / "docs" / "tutorial.md"
BLOCK = re.compile(r"(?:^<!-- test: (?P<mark>.+?) -->\n)?^```(?P<language>\w+)\n(?P<content>.*?)^```$", re.M | re.S)
VARYING = re.compile(r"\d+ events/s|\d+\.\d+ s\b|\bon (cpu|cuda)\b|0x[0-9A-F]{8}")
"""Rates, times and the back end differ from machine to machine, the TCK with every constant in the code."""
LEFT_OUT = "..."
SECONDS = 50.0


@dataclass(frozen=True, slots=True)
class Block:
    """A fenced block of the page, and the remark above it that only the test reads."""

    mark: str
    language: str
    content: str

    def commands(self) -> list[tuple[str, list[str]]]:
        """Each command with the lines that the page shows below it."""
        steps: list[tuple[str, list[str]]] = []
        for line in self.content.splitlines():
            if line.startswith("$ "):
                steps.append((line.removeprefix("$ "), []))
            else:
                steps[-1][1].append(line)
        return steps


def blocks() -> list[Block]:
    """The blocks of the page in their order."""
    return [Block(b["mark"] or "", b["language"], b["content"]) for b in BLOCK.finditer(PAGE.read_text("utf-8"))]


class Terminal:
    """A terminal of the reader, in which a block runs until it ends or is interrupted."""

    def __init__(self, script: str, folder: Path, log: Path) -> None:
        self._log = log
        with log.open("wb") as output:
            self._process = subprocess.Popen(
                ["bash", "-ec", script], cwd=folder, env=environment(), stdout=output, stderr=output,
                start_new_session=True,
            )  # fmt: skip

    def text(self) -> str:
        return self._log.read_text()

    def wait_for(self, text: str) -> None:
        end = time.monotonic() + SECONDS
        while text not in self.text():
            assert self._process.poll() is None, self.text()
            assert time.monotonic() < end, self.text()
            time.sleep(0.05)

    def end(self, number: signal.Signals | None = None) -> str:
        """Wait for the end, after a signal to everything that runs in it; returns what was printed."""
        if number is not None:
            os.killpg(self._process.pid, number)
        self._process.wait(SECONDS)
        return self.text()

    def kill(self) -> None:
        if self._process.poll() is None:
            os.killpg(self._process.pid, signal.SIGKILL)
            self._process.wait()


def environment() -> dict[str, str]:
    """That of a reader who has activated the virtual environment."""
    return {**os.environ, "PATH": f"{Path(sys.executable).parent}{os.pathsep}{os.environ['PATH']}", "COLUMNS": "80"}


class Reader:
    """Follows the page in an empty folder beside examples/, with ports that are free."""

    def __init__(self, clone: Path) -> None:
        self.folder = clone / "tutorial"
        self.folder.mkdir()
        self.ports = OwnPorts()
        (clone / "examples").mkdir()
        for file in (ROOT / "examples").iterdir():
            if file.is_file():
                (clone / "examples" / file.name).write_text(self.ports.put_into(file.read_text("utf-8")), "utf-8")
        self.terminals: dict[str, Terminal] = {}
        self.promised: dict[str, list[str]] = {}

    def follow(self, block: Block) -> None:
        """Do what a block says and compare what comes with what it shows."""
        action, _, rest = block.mark.partition(" ")
        if action == "skip,":
            return
        if action == "file":
            (self.folder / rest).write_text(block.content, "utf-8")
            return
        if action == "terminal":
            self._open_terminal(rest, block)
            return
        if action == "interrupt":
            self.terminals[rest].end(signal.SIGINT)
        for command, shown in block.commands():
            run = subprocess.run(
                ["bash", "-c", self.ports.put_into(command)], cwd=self.folder, env=environment(),
                stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True, timeout=SECONDS, check=False,
            )  # fmt: skip
            self._compare(command, run.stdout, shown)

    def finish(self) -> None:
        """The other terminals have printed what the page shows."""
        for name, terminal in self.terminals.items():
            self._compare(name, terminal.end(), self.promised[name])

    def _open_terminal(self, rest: str, block: Block) -> None:
        name, _, until = rest.partition(", until ")
        script = "\n".join(command for command, _ in block.commands())
        self.promised[name] = [line for _, shown in block.commands() for line in shown]
        self.terminals[name] = Terminal(self.ports.put_into(script), self.folder, self.folder.parent / f"{name}.log")
        self.terminals[name].wait_for(*shlex.split(until))

    def _compare(self, what: str, printed: str, shown: list[str]) -> None:
        compare(what, printed, [self.ports.put_into(line) for line in shown])


def compare(what: str, printed: str, shown: list[str]) -> None:
    """Assert that lines were printed in the order of the page; `...` stands for lines that it leaves out.

    Empty lines do not count: a progress bar leaves one where there is no terminal to draw it on.
    """
    remaining = [VARYING.sub("#", line.rstrip()) for line in printed.splitlines() if line.strip()]
    may_skip = False
    for line in (VARYING.sub("#", line.rstrip()) for line in shown):
        if line == LEFT_OUT:
            may_skip = True
            continue
        while may_skip and remaining and remaining[0] != line:
            remaining.pop(0)
        may_skip = False
        assert remaining, f"{what}: {line!r} is not in\n{printed}"
        assert remaining.pop(0) == line, f"{what} printed\n{printed}"
    assert may_skip or not remaining, f"{what}: the page does not show {remaining}"


@pytest.fixture
def reader(tmp_path: Path) -> Iterator[Reader]:
    reader = Reader(tmp_path)
    yield reader
    for terminal in reader.terminals.values():
        terminal.kill()


def test_who_follows_the_tutorial_sees_what_it_shows(reader: Reader) -> None:
    if shutil.which("curl") is None:
        pytest.skip("curl, with which the tutorial looks at the metrics, is not installed")
    for block in blocks():
        if block.language in ("console", "toml", "python"):
            reader.follow(block)
    reader.finish()


def test_the_menu_of_the_tutorial_is_that_of_the_examples() -> None:
    files = [block.content for block in blocks() if block.mark == "file trigger.toml"]
    assert files == [(ROOT / "examples" / "trigger.toml").read_text("utf-8")]
