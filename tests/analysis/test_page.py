"""The page about the library works when it is followed."""

from __future__ import annotations

import re
import shutil
from pathlib import Path
from typing import Any

import pytest

from tests.analysis.conftest import run

PAGE = Path(__file__).parents[2] / "docs" / "how-to" / "analyse-events.md"


def test_every_block_runs(
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
    capsys: pytest.CaptureFixture[str],
    real_events: Path,
    trigger: Path,
) -> None:
    text = PAGE.read_text(encoding="utf-8")
    blocks = re.findall(r"```python\n(.*?)```", text, re.DOTALL)
    commands = re.search(r"## Tuples.*?```\n(.*?)```", text, re.DOTALL)
    assert len(blocks) == 5
    assert commands is not None
    monkeypatch.chdir(tmp_path)
    run("process", real_events, "--trigger", trigger, "--backend", "cpu", "--accepted", "accepted.mdf")
    names: dict[str, Any] = {}
    for block in blocks:
        # Simulating as many events as the page names would take too long.
        exec(compile(block.replace("500", "4"), str(PAGE), "exec"), names)
    output = capsys.readouterr().out
    printed = re.search(r"```text\n(.*?)\n```", text, re.DOTALL)
    assert printed is not None
    assert output.splitlines()[0] == printed[1].replace("500", "4")
    assert "Hlt1" in output
    assert "{'unit': 'MeV', 'description': 'mass of two muons'}" in output
    shutil.copy(real_events, "jpsi.mdf")
    for command in commands[1].splitlines():
        _, *arguments = (part.strip("'") for part in command.split())
        run(*arguments, "--backend", "cpu")
    assert {path.name for path in tmp_path.iterdir()} > {"jpsi.parquet", "dimuons.root", "event.html"}
