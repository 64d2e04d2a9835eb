"""Commands on pages exist: commands and options of hltnode, make targets, programs of the repository."""

from __future__ import annotations

import itertools
import re
import shlex
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
import typer

from hltnode.daemon.cli import app
from tests.docs.followed_page import ROOT, blocks

PAGES = [*sorted((ROOT / "docs").rglob("*.md")), *(ROOT / n for n in ("README.md", "CONTRIBUTING.md", "SECURITY.md"))]
PAGES += [ROOT / "examples" / "README.md", ROOT / "benchmarks" / "README.md"]
SHELL = ("console", "sh", "")
INLINE = re.compile(r"`((?:hltnode|make) [^`]+)`")
OPERATORS = re.compile(r"^[|&;()<>]+$")
TARGETS = set(re.findall(r"^([a-z][\w-]*):", (ROOT / "Makefile").read_text("utf-8"), re.M))


def _scripts(page: Path) -> Iterator[str]:
    """Commands that a reader would type: lines of blocks, and commands in the text."""
    for block in blocks(page):
        if block.language in SHELL:
            typed = block.language != "console"
            lines = block.content.replace("\\\n", " ").splitlines()
            yield from (line.removeprefix("$ ") for line in lines if typed or line.startswith("$ "))
    text = re.sub(r"^```.*?^```", "", page.read_text("utf-8"), flags=re.M | re.S)
    yield from (" ".join(command.split()) for command in INLINE.findall(text))


def _commands(script: str) -> Iterator[list[str]]:
    """The commands of a line, split into words; a line that is not valid in a shell has none."""
    lexer = shlex.shlex(script, posix=True, punctuation_chars=True)
    lexer.whitespace_split = True
    try:
        words = list(lexer)
    except ValueError:
        return
    command: list[str] = []
    for word in [*words, ";"]:
        if OPERATORS.match(word):
            yield command
            command = []
        elif command or (word != "sudo" and not re.match(r"[A-Z_]+=", word)):
            command.append(word)


CHAIN_OF_A_PAGE = "tiles"
"""A page makes this chain, and a test runs all commands of that page (test_external_package.py)."""


def _wrong(words: list[str]) -> str | None:
    """Missing parts of a command."""
    if not words:
        return None
    program, arguments = Path(words[0]).name, words[1:]
    if program == "hltnode":
        return _wrong_in_hltnode(arguments)
    if program == "make":
        return next((f"target {a}" for a in arguments if re.match(r"[a-z][\w-]*$", a) and a not in TARGETS), None)
    if program == "python" and arguments and re.match(r"(\.\./)*(examples|tools)/", arguments[0]):
        program_path = re.sub(r"^(\.\./)*", "", arguments[0])
        return None if (ROOT / program_path).is_file() else f"program {program_path}"
    return None


def _wrong_in_hltnode(arguments: list[str]) -> str | None:
    chain = dict(itertools.pairwise(arguments)).get("--chain")
    if chain == CHAIN_OF_A_PAGE:
        return None
    command: Any = typer.main.get_command(app)
    rest = list(arguments)
    while rest and hasattr(command, "list_commands") and not rest[0].startswith("-"):
        context = typer.Context(command)
        if rest[0] not in command.list_commands(context):
            return f"command {rest[0]}"
        _, command, rest = command.resolve_command(context, rest)
    known = {option for parameter in command.params for option in parameter.opts} | {"--help", "--version"}
    options = {word.partition("=")[0] for word in rest if re.match(r"--?[a-z]", word)}
    return f"options {sorted(options - known)} of {arguments[0]}" if options - known else None


@pytest.mark.parametrize("page", PAGES, ids=lambda page: page.relative_to(ROOT).as_posix())
def test_commands_that_a_page_shows_are_there(page: Path) -> None:
    wrong = [
        f"{script}: no {what}" for script in _scripts(page) for words in _commands(script) if (what := _wrong(words))
    ]
    assert not wrong, "\n".join(wrong)


@pytest.mark.parametrize(
    ("script", "what"),
    [
        ("sudo hltnode serv --config x", "command serv"),
        ("cd x && .venv/bin/hltnode serve --confg x", "options ['--confg'] of serve"),
        ("hltnode keys create DIR --nme x | cat", "options ['--nme'] of keys"),
        ("make no-such-target", "target no-such-target"),
        ("python ../examples/none.py --x", "program examples/none.py"),
    ],
)
def test_a_command_that_is_not_there_is_found(script: str, what: str) -> None:
    assert what in [_wrong(words) for words in _commands(script)]
