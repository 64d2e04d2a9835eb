"""A page that a test follows: its commands, in order, give the output that the page shows.

Blocks of the language `console` show commands, after `$ `, and their output; blocks of `sh` contain only commands,
which must succeed. An invisible remark above a block gives it another meaning:

    <!-- test: skip, REASON -->                   not run; test_commands.py checks that its commands exist
    <!-- test: file NAME -->                      a file that the reader writes
    <!-- test: terminal NAME, until "TEXT" -->    commands in another terminal; the page continues when TEXT is printed
    <!-- test: interrupt NAME -->                 after Ctrl-C in that terminal
"""

import os
import re
import shlex
import signal
import subprocess
import sys
import time
from dataclasses import dataclass
from pathlib import Path
from typing import Self

from tests.own_ports import OwnPorts

ROOT = Path(__file__).resolve().parents[2]
BLOCK = re.compile(r"(?:^<!-- test: (?P<mark>.+?) -->\n)?^```(?P<language>\w*)\n(?P<content>.*?)^```$", re.M | re.S)
VARYING = re.compile(r"\d+ events/s|\d+\.\d+ s\b|\bon (cpu|cuda)\b|0x[0-9A-F]{8}")
"""Rates, times and the back end depend on the machine, the TCK on every constant in the code."""
LEFT_OUT = "..."
SECONDS = 240.0


@dataclass(frozen=True, slots=True)
class Block:
    """A fenced block of the page, and the remark above it for the test."""

    mark: str
    language: str
    content: str

    def commands(self) -> list[tuple[str, list[str]]]:
        """Each command of a console, with the output lines below it."""
        steps: list[tuple[str, list[str]]] = []
        for line in self.content.splitlines():
            if line.startswith("$ "):
                steps.append((line.removeprefix("$ "), []))
            else:
                steps[-1][1].append(line)
        return steps


def blocks(page: Path) -> list[Block]:
    """The blocks of a page, in order."""
    return [Block(b["mark"] or "", b["language"], b["content"]) for b in BLOCK.finditer(page.read_text("utf-8"))]


class Terminal:
    """A terminal of the reader, in which a block runs until it ends or is interrupted."""

    def __init__(self, script: str, folder: Path, log: Path, programs: Path) -> None:
        self._log = log
        with log.open("wb") as output:
            self._process = subprocess.Popen(
                ["bash", "-ec", script], cwd=folder, env=environment(programs), stdout=output, stderr=output,
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
        """Send a signal to all its processes, wait for the end, and return the output."""
        if number is not None:
            os.killpg(self._process.pid, number)
        self._process.wait(SECONDS)
        return self.text()

    def kill(self) -> None:
        if self._process.poll() is None:
            os.killpg(self._process.pid, signal.SIGKILL)
            self._process.wait()


def environment(programs: Path) -> dict[str, str]:
    """The environment of a reader who has activated the virtual environment whose programs are in a folder."""
    return {**os.environ, "PATH": f"{programs}{os.pathsep}{os.environ['PATH']}", "COLUMNS": "80", "PIP_NO_INDEX": "1"}


class Reader:
    """Follows a page in a clone that has only examples/, with free ports.

    Args:
        clone: an empty folder, the root of the clone.
        folder: current folder of the reader, relative to the clone; created if missing.
        programs: the programs of the reader's virtual environment; default: of the running one.

    Use as context manager: it ends all started processes.
    """

    def __init__(self, clone: Path, folder: str = ".", programs: Path = Path(sys.executable).parent) -> None:
        self.programs = programs
        self.folder = clone / folder
        self.folder.mkdir(exist_ok=True)
        self.ports = OwnPorts()
        (clone / "examples").mkdir()
        for file in (ROOT / "examples").iterdir():
            if file.is_file():
                (clone / "examples" / file.name).write_text(self.ports.put_into(file.read_text("utf-8")), "utf-8")
        self.terminals: dict[str, Terminal] = {}
        self.promised: dict[str, list[str]] = {}

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_error: object) -> None:
        for terminal in self.terminals.values():
            terminal.kill()

    def follow(self, page: Path) -> None:
        """Follow the page from start to end."""
        for block in blocks(page):
            if block.language in ("console", "sh") or block.mark:
                self._follow_block(block)
        for name, terminal in self.terminals.items():
            self._compare(name, terminal.end(), self.promised[name])

    def _follow_block(self, block: Block) -> None:
        """Execute a block and compare the output with the block."""
        action, _, rest = block.mark.partition(" ")
        if action == "skip,":
            return
        if action == "file":
            (self.folder / rest).parent.mkdir(exist_ok=True)
            (self.folder / rest).write_text(self.ports.put_into(block.content), "utf-8")
            return
        if action == "terminal":
            self._open_terminal(rest, block)
            return
        if action == "interrupt":
            self.terminals[rest].end(signal.SIGINT)
        if block.language == "sh":
            status, printed = self._run(block.content)
            assert status == 0, f"{block.content}\n{printed}"
            return
        for command, shown in block.commands():
            self._compare(command, self._run(command)[1], shown)

    def _run(self, script: str) -> tuple[int, str]:
        """Exit status and output of commands."""
        run = subprocess.run(
            ["bash", "-ec", self.ports.put_into(script)], cwd=self.folder, env=environment(self.programs),
            stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True, timeout=SECONDS, check=False,
        )  # fmt: skip
        return run.returncode, run.stdout

    def _open_terminal(self, rest: str, block: Block) -> None:
        name, _, until = rest.partition(", until ")
        steps = block.commands() if block.language == "console" else [(block.content, [LEFT_OUT])]
        script = "\n".join(command for command, _ in steps)
        self.promised[name] = [line for _, shown in steps for line in shown]
        log = self.folder.parent / f"{name}.log"
        self.terminals[name] = Terminal(self.ports.put_into(script), self.folder, log, self.programs)
        self.terminals[name].wait_for(*shlex.split(until))

    def _compare(self, what: str, printed: str, shown: list[str]) -> None:
        compare(what, printed, [self.ports.put_into(line) for line in shown])


def compare(what: str, printed: str, shown: list[str]) -> None:
    """Assert that lines were printed in the order of the page; `...` stands for omitted lines, or at the end of a line
    for its rest.

    Empty lines are ignored: without a terminal, a progress bar leaves one.
    """
    remaining = [VARYING.sub("#", line.rstrip()) for line in printed.splitlines() if line.strip()]
    may_skip = False
    for line in (VARYING.sub("#", line.rstrip()) for line in shown):
        if line == LEFT_OUT:
            may_skip = True
            continue
        while may_skip and remaining and not _fits(remaining[0], line):
            remaining.pop(0)
        may_skip = False
        assert remaining, f"{what}: {line!r} is not in\n{printed}"
        assert _fits(remaining.pop(0), line), f"{what} printed\n{printed}"
    assert may_skip or not remaining, f"{what}: the page does not show {remaining}"


def _fits(printed: str, shown: str) -> bool:
    begin, cut, end = shown.rpartition(f" {LEFT_OUT}")
    return printed.startswith(begin) if cut and not end else printed == shown
