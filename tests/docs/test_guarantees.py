"""Each promise of docs/guarantees.md has a test that `make test` runs."""

from __future__ import annotations

import ast
import re
from pathlib import Path

import pytest

ROOT = Path(__file__).resolve().parents[2]
NAMED = sorted(set(re.findall(r"`(tests/[\w/]+\.py)`", (ROOT / "docs/guarantees.md").read_text())))


def is_slow(expression: ast.expr | None) -> bool:
    """Whether a marker, or one of a list of markers, is `slow`."""
    return expression is not None and any(
        isinstance(node, ast.Attribute) and node.attr == "slow" for node in ast.walk(expression)
    )


def names_in_make_test(source: str) -> list[str]:
    """Names of the tests of a module that no marker keeps out of `make test`."""
    body = ast.parse(source).body
    marks = [
        node.value for node in body if isinstance(node, ast.Assign) and ast.unparse(node.targets[0]) == "pytestmark"
    ]
    if any(map(is_slow, marks)):
        return []
    return [
        node.name
        for node in body
        if isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef)
        and node.name.startswith("test_")
        # A parameter with this mark leaves the others.
        and not any(is_slow(it) for it in node.decorator_list if "parametrize" not in ast.unparse(it))
    ]


def test_slow_tests_are_recognised() -> None:
    slow = "@pytest.mark.slow\ndef test_a(): ...\n@pytest.mark.process\nasync def test_b(): ...\n"
    assert names_in_make_test(slow) == ["test_b"]
    assert names_in_make_test("pytestmark = [pytest.mark.slow, pytest.mark.process]\n" + slow) == []


def test_the_page_names_tests() -> None:
    assert len(NAMED) > 8


@pytest.mark.parametrize("path", NAMED)
def test_each_named_file_has_a_test_that_is_not_slow(path: str) -> None:
    assert names_in_make_test((ROOT / path).read_text())
