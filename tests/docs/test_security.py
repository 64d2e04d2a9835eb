"""Each line of SECURITY.md about a port names a test that proves it, and `make test` runs these tests."""

from __future__ import annotations

import re
from pathlib import Path

from hltnode.daemon.security.access_control import CONTROL_TOTAL_BYTES, REQUEST_MARGIN
from hltnode.daemon.security.memory_growth import GROWTH
from tests.docs.test_guarantees import names_in_make_test

ROOT = Path(__file__).resolve().parents[2]
PORTS = "What a client that reaches a port can do"
MIB = 1 << 20
TEST = re.compile(r"`(tests/[\w/]+\.py)::(test_\w+)`")


def _section(heading: str) -> str:
    """A section of SECURITY.md, up to the next heading of its level."""
    page = (ROOT / "SECURITY.md").read_text(encoding="utf-8")
    return page.split(f"\n## {heading}\n")[1].split("\n## ")[0]


def test_every_line_about_a_port_names_a_test() -> None:
    rows = [line for line in _section(PORTS).splitlines() if line.startswith("| ")]
    lines = [row for row in rows if not row.endswith("| test |")]
    assert len(lines) > 20
    assert not [line for line in lines if not TEST.search(line)]


def test_make_test_runs_every_test_that_is_named() -> None:
    named = set(TEST.findall((ROOT / "SECURITY.md").read_text(encoding="utf-8")))
    assert named
    missing = [
        f"{path}::{name}"
        for path, name in sorted(named)
        if not (ROOT / path).is_file() or name not in names_in_make_test((ROOT / path).read_text(encoding="utf-8"))
    ]
    assert not missing, "\n".join(missing)


def test_the_memory_that_each_port_may_cost_is_what_the_limits_say() -> None:
    sections = {title: text for title, _, text in (part.partition("\n") for part in _section(PORTS).split("\n### "))}

    def memory_row(port: str) -> str:
        section = next(text for title, text in sections.items() if title.startswith(port))
        return next(line for line in section.splitlines() if line.startswith("| hold memory"))

    assert f"and {GROWTH // MIB} MiB more" in memory_row("Data")
    assert f"up to {CONTROL_TOTAL_BYTES // MIB} MiB in all, beside the {GROWTH // MIB} MiB" in memory_row("Control")
    assert f"and {REQUEST_MARGIN // MIB} MiB in all, beside the {GROWTH // MIB} MiB" in memory_row("Requests")
