"""Plain English: phrases that need a second reading, wide pages, wide table cells and long test names are refused.

`CLEAN` lists the folders and files that follow the rules. It grows until it is the whole tree.
"""

from __future__ import annotations

import re
import subprocess
from collections.abc import Iterator
from pathlib import Path

import pytest

ROOT = Path(__file__).resolve().parents[2]

CLEAN = (
    ".github", ".pre-commit-config.yaml", "CHANGELOG.md", "CITATION.cff", "CONTRIBUTING.md", "README.md",
    "SECURITY.md", "benchmarks", "client", "daemon", "deploy", "docker", "docs", "examples", "library", "mkdocs.yml",
    "processing", "protocol", "pyproject.toml", "tests", "tools",
)  # fmt: skip
"""Every file below these paths is checked."""
GENERATED = ("docs/reference", "deploy/requirements.lock")
"""Files written by programs; their sources are checked instead."""

PAGE_WIDTH = 100
CELL_WIDTH = 200
TEST_NAME_WIDTH = 90
TEST_NAME = re.compile(r"^[ \t]*(?:async )?def (test_\w+)", re.MULTILINE)

INSTEAD = {
    r"so (?:many|often)(?! (?:that|as)\b)": "this many, this often, or the number",
    r"the begin(?= of|[,.;:]|$)": "the start",
    r"(?:gets?|got|getting) on\b(?! (?:a|the) )": "continues, makes progress",
    r"look(?:s|ed|ing)? at": "check, read, process, open",
    r"(?:some|no)body": "a name of who it is, or the passive",
    r"whoever|for who\b(?! in\b)|for whom": "a client that, an operator who",
    r"victims?|suspects?|blamed?|fates?": "the technical term",
    r"settled": "acknowledged, closed, decided",
    r"the other way round": "in reverse order, inversely",
    r"by (?:itself|themselves)": "automatically, alone",
    r"in vain": "without an answer within N s",
}
"""Banned phrase, as a pattern of words, and the replacement."""
BREAK = r"(?:[ \t]|\n[ \t]*(?:#|//|\*)?[ \t]*)"
"""A space, or the end of a line and the start of the next one, which may be a comment."""
BANNED = {
    re.compile(rf"(?<![\w-])(?:{pattern})(?![\w-])".replace(" ", BREAK), re.IGNORECASE): text
    for pattern, text in INSTEAD.items()
}
"""The patterns; a phrase may be broken over two lines."""
ANY_BANNED = re.compile("|".join(pattern.replace(" ", BREAK) for pattern in INSTEAD), re.IGNORECASE)
"""Finds at least what one of them finds, in one reading of the text."""

SUFFIXES = {
    ".c", ".cff", ".cpp", ".cu", ".cuh", ".h", ".html", ".in", ".j2", ".js", ".json", ".md", ".py", ".pyi", ".service",
    ".sh", ".svg", ".toml", ".yaml", ".yml",
}  # fmt: skip
LINK_TARGET = re.compile(r"(?<=\])\([^)\s]+\)")
MARKER = re.compile(r"^\s*(?:[-*+]|\d+\.)?\s*|^\s*")


def _files(*suffixes: str) -> Iterator[Path]:
    """The clean files that git knows or would add, except this one, which contains the banned phrases."""
    listed = subprocess.run(
        ["git", "-C", str(ROOT), "ls-files", "--cached", "--others", "--exclude-standard", *CLEAN],
        capture_output=True, text=True, check=False,
    )  # fmt: skip
    if listed.returncode != 0:
        pytest.skip(f"not a checkout of git: {listed.stderr.strip()}")
    for name in listed.stdout.splitlines():
        path = ROOT / name
        generated = name.startswith(GENERATED) or "generated" in path.parts
        if path.suffix in suffixes and path.is_file() and path != Path(__file__).resolve() and not generated:
            yield path


def _banned(text: str) -> Iterator[tuple[int, str]]:
    """Lines with a banned phrase."""
    if ANY_BANNED.search(text) is None:
        return
    for pattern, instead in BANNED.items():
        for found in pattern.finditer(text):
            yield text.count("\n", 0, found.start()) + 1, f"{' '.join(found[0].split())!r}: write {instead}"


def _lines_of_text(page: str) -> Iterator[tuple[int, str]]:
    """Lines of paragraphs and lists, without code, tables, headings, comments and pictures."""
    in_code = in_comment = False
    for number, line in enumerate(page.splitlines(), 1):
        if line.lstrip().startswith("```"):
            in_code = not in_code
            continue
        in_comment = in_comment or line.lstrip().startswith("<!--")
        if not (in_code or in_comment) and not re.match(r"\s*(?:\||#|>|!\[|<|\[[^\]]+\]: )", line):
            yield number, line
        if "-->" in line:
            in_comment = False


def _too_wide(page: str) -> Iterator[tuple[int, str]]:
    """Breakable lines that are wider than a page. A single link or code span cannot be broken."""
    for number, line in _lines_of_text(page):
        if len(line) > PAGE_WIDTH and " " in MARKER.sub("", re.sub(r"`[^`]*`", "", line), count=1).strip():
            yield number, f"{len(line)} columns"


def _wide_cells(page: str) -> Iterator[tuple[int, str]]:
    """Table cells whose visible text is too long; link targets are not visible."""
    in_code = False
    for number, line in enumerate(page.splitlines(), 1):
        in_code ^= line.lstrip().startswith("```")
        if line.startswith("|") and not in_code:
            for cell in re.split(r"(?<!\\)\|", LINK_TARGET.sub("", line)):
                if len(cell.strip()) >= CELL_WIDTH:
                    yield number, f"a cell of {len(cell.strip())} characters: {cell.strip()[:60]}..."


def _report(found: Iterator[tuple[Path, int, str]]) -> None:
    lines = [f"{path.relative_to(ROOT)}:{number}: {what}" for path, number, what in found]
    assert not lines, "\n".join(lines)


def test_no_banned_phrase_is_in_a_clean_folder() -> None:
    _report((path, *it) for path in _files(*SUFFIXES) for it in _banned(path.read_text(encoding="utf-8")))


def test_text_of_pages_is_at_most_100_columns_wide() -> None:
    _report((path, *it) for path in _files(".md") for it in _too_wide(path.read_text(encoding="utf-8")))


def test_cells_of_tables_are_below_200_characters() -> None:
    _report((path, *it) for path in _files(".md") for it in _wide_cells(path.read_text(encoding="utf-8")))


def test_names_of_tests_are_below_90_characters() -> None:
    _report(
        (path, text.count("\n", 0, found.start()) + 1, f"{len(found[1])} characters: {found[1]}")
        for path in _files(".py")
        for text in (path.read_text(encoding="utf-8"),)
        for found in TEST_NAME.finditer(text)
        if len(found[1]) >= TEST_NAME_WIDTH
    )


def test_every_clean_path_exists() -> None:
    assert not [name for name in CLEAN if not (ROOT / name).exists()]


@pytest.mark.parametrize(
    ("text", "line"),
    [
        ("It waits so\n  many seconds.", 1),
        ("# the list\n# is read from the\n# begin of the file", 2),
        ("Nobody knows.", 1),
        ("a\nlooked at", 2),
        ("It comes back by itself.", 1),
        ("whoever reaches it", 1),
    ],
)
def test_a_banned_phrase_is_found_with_its_line(text: str, line: int) -> None:
    assert [number for number, _ in _banned(text)] == [line]


@pytest.mark.parametrize(
    "text", ["so many that it is dropped", "the beginning", "closed_meps_settled", "get on the list", "a look ahead"]
)
def test_a_phrase_that_only_looks_alike_is_allowed(text: str) -> None:
    assert not list(_banned(text))


def test_wide_lines_and_cells_are_found_and_code_is_left_out() -> None:
    wide = "word " * 21
    page = f"{wide}\n```\n{wide}\n```\n| {'x' * 200} | [a]({'x' * 300}) |\n`{'x' * 120}`\n"
    assert [number for number, _ in _too_wide(page)] == [1]
    assert [number for number, _ in _wide_cells(page)] == [5]
