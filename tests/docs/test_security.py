"""Each line of SECURITY.md about a port names a test that proves it, and `make test` runs these tests."""

from __future__ import annotations

import re
from pathlib import Path

from tests.docs.test_guarantees import names_in_make_test

ROOT = Path(__file__).resolve().parents[2]
TEST = re.compile(r"`(tests/[\w/]+\.py)::(test_\w+)`")


def _section(heading: str) -> str:
    """A section of SECURITY.md, up to the next heading of its level."""
    page = (ROOT / "SECURITY.md").read_text(encoding="utf-8")
    return page.split(f"\n## {heading}\n")[1].split("\n## ")[0]


def test_every_line_about_a_port_names_a_test() -> None:
    rows = [line for line in _section("What a client that reaches a port can do").splitlines() if line.startswith("| ")]
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
