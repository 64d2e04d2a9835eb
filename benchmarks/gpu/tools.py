"""Checks by other programs: pytest -m gpu, and NVIDIA's compute-sanitizer on one small batch."""

import os
import re
import shutil
import subprocess
import sys
from collections.abc import Mapping, Sequence
from pathlib import Path

from benchmarks.gpu.report import Section

ROOT = Path(__file__).resolve().parents[2]
SANITIZERS = ("memcheck", "racecheck", "synccheck")
PYTEST_SECONDS, SANITIZER_SECONDS = 240, 120
TAIL = 40
"""Number of output lines to keep of a failed program."""


def run(command: Sequence[str], seconds: int, environment: Mapping[str, str] | None = None) -> tuple[int | None, str]:
    """Exit code (None: time-out) and output."""
    try:
        done = subprocess.run(
            command,
            cwd=ROOT,
            env=environment,
            stdout=subprocess.PIPE,
            stderr=subprocess.STDOUT,
            text=True,
            check=False,
            timeout=seconds,
        )
    except subprocess.TimeoutExpired as error:
        output = error.stdout or b""
        return None, output.decode(errors="replace") if isinstance(output, bytes) else output
    return done.returncode, done.stdout


def _quoted(output: str) -> str:
    return "```\n" + "\n".join(output.rstrip().splitlines()[-TAIL:]) + "\n```\n"


def only(device: int) -> dict[str, str]:
    """An environment with the GPU of this ordinal only."""
    visible = os.environ.get("CUDA_VISIBLE_DEVICES")
    chosen = str(device) if visible is None else visible.split(",")[device]
    return {"CUDA_DEVICE_ORDER": "PCI_BUS_ID", **os.environ, "CUDA_VISIBLE_DEVICES": chosen}


def gpu_tests(device: int) -> Section:
    """pytest -m gpu. A skipped test counts as a failure: this machine must run all tests."""
    options = ["-q", "-m", "gpu", "-p", "no:cacheprovider", "-W", "default", "--timeout", "200"]
    command = [sys.executable, "-m", "pytest", *options, "tests/processing"]
    code, output = run(command, PYTEST_SECONDS, only(device))
    last = (output.rstrip().splitlines() or [""])[-1].strip("= ")
    good = code == 0 and "passed" in last and "skipped" not in last
    shown = f"took longer than {PYTEST_SECONDS} s" if code is None else last
    return Section(
        title="pytest -m gpu",
        good=good,
        text=shown if good else f"{shown}\n\n{_quoted(output)}",
        data={"exit_code": code, "summary": last},
    )


def find_sanitizer() -> str | None:
    """compute-sanitizer of the CUDA toolkit."""
    beside = Path(os.environ.get("CUDA_HOME", "/usr/local/cuda")) / "bin" / "compute-sanitizer"
    return shutil.which("compute-sanitizer") or (str(beside) if beside.exists() else None)


def sanitizer_problems(output: str) -> int | None:
    """Number of errors and hazards from the last line of compute-sanitizer; None without such a line."""
    found = re.findall(r"(?:ERROR SUMMARY|RACECHECK SUMMARY): (\d+)", output)
    return int(found[-1]) if found else None


def sanitizer(device: int) -> Section:
    """compute-sanitizer with each tool on the smallest whole batch (small_batch.py)."""
    program = find_sanitizer()
    if program is None:
        return Section(
            title="compute-sanitizer", text="Not installed: it is part of the CUDA toolkit.", data={"installed": False}
        )
    rows, failures = [], []
    data: dict[str, object] = {"installed": True}
    for tool in SANITIZERS:
        command = [program, "--tool", tool, sys.executable, "-m", "benchmarks.gpu.small_batch", str(device)]
        code, output = run(command, SANITIZER_SECONDS)
        problems = sanitizer_problems(output)
        if code is None:
            verdict = f"took longer than {SANITIZER_SECONDS} s"
        elif problems is None:
            verdict = f"did not run (exit code {code})"
        else:
            verdict = f"{problems} problems" if problems else "no problem" if code == 0 else f"exit code {code}"
        data[tool] = {"exit_code": code, "problems": problems}
        rows.append((tool, verdict))
        if verdict != "no problem":
            failures.append(f"{tool}:\n{_quoted(output)}")
    return Section(
        title="compute-sanitizer",
        good=not failures,
        text="\n".join(failures),
        header=("tool", "found"),
        rows=rows,
        data=data,
    )
