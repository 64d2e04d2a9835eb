"""Commands on pages for the log of a service work on the output of journalctl, lines of systemd included."""

from __future__ import annotations

import json
import re
import shutil
import subprocess
from pathlib import Path

import pytest

ROOT = Path(__file__).resolve().parents[2]
PAGES = [ROOT / "README.md", *sorted((ROOT / "docs").rglob("*.md"))]
FILTERS = [
    (page.relative_to(ROOT).as_posix(), options, program)
    for page in PAGES
    for options, program in re.findall(r"journalctl [^|`\n]*\| jq (-\w+ )?'([^']+)'", page.read_text())
]
READY = {"part": "node", "event": "ready", "level": "info"}
FAILED = {"part": "node", "event": "failed", "level": "critical", "reason": "a thread crashed"}
JOURNAL = [
    "Starting hltnode.service - One hltnode...",
    json.dumps(READY),
    "42",
    json.dumps(FAILED),
    "",
    "-- Boot 1f --",
]


def test_the_pages_have_such_commands_and_each_reads_lines_and_not_only_json() -> None:
    assert len(FILTERS) >= 3
    commands = [command for page in PAGES for command in re.findall(r"journalctl [^`\n]*jq[^`\n]*", page.read_text())]
    assert len(commands) == len(FILTERS)


@pytest.mark.parametrize(("page", "options", "program"), FILTERS)
def test_a_command_shows_what_went_wrong_between_the_lines_of_systemd(page: str, options: str, program: str) -> None:
    jq = shutil.which("jq")
    if jq is None:
        pytest.skip("jq is not installed")
    shown = subprocess.run(
        [jq, *options.split(), "-c", program],
        input="\n".join(JOURNAL) + "\n",
        capture_output=True,
        text=True,
        check=False,
        timeout=30,
    )
    assert (shown.returncode, shown.stderr) == (0, ""), page
    assert FAILED in [json.loads(line) for line in shown.stdout.splitlines()]
