"""Code for any experiment names no detector, neither in identifiers nor in strings, docstrings included."""

from __future__ import annotations

import re
import tokenize
from collections.abc import Iterator
from pathlib import Path

import pytest

ROOT = Path(__file__).resolve().parents[2]

DETECTOR_FREE = (
    "processing/framework",
    "processing/selection",
    "processing/algorithms",
    "processing/offline",
    "daemon",
)
"""Commands are left out: some concern the physics of LHCb."""
LEFT_OUT = "daemon/commands"

DETECTORS = {"lhcb", "velo", "ut", "scifi", "muon", "rich", "ecal", "hcal", "plume", "retina", "superpixel", "lhcbid"}

ALLOWED = {
    # The default chain of the configuration.
    "daemon/configuration/node_sections.py": {"lhcb"},
    # The counters of LHCb's luminosity summaries have names of detectors, and the luminometer is one of them.
    "processing/selection/studies/luminosity.py": {"plume", "velo"},
    # A text library, named by an option of typer.
    "daemon/cli.py": {"rich"},
}

WORD = re.compile(r"[A-Z]+(?![a-z])|[A-Z]?[a-z]+")
COMMENTS = re.compile(r"//[^\n]*|/\*.*?\*/", re.DOTALL)


def words_of_python(path: Path) -> Iterator[tuple[int, str]]:
    """(line, word) of every identifier and string."""
    with tokenize.open(path) as file:
        for token in tokenize.generate_tokens(file.readline):
            if token.type in (tokenize.NAME, tokenize.STRING):
                for word in WORD.findall(token.string):
                    yield token.start[0], word.lower()


def words_of_kernels(path: Path) -> Iterator[tuple[int, str]]:
    """(line, word) of the code that the compiler reads."""
    code = COMMENTS.sub(lambda comment: "\n" * comment[0].count("\n"), path.read_text())
    for number, line in enumerate(code.splitlines(), 1):
        for word in WORD.findall(line):
            yield number, word.lower()


def named(path: Path) -> set[tuple[int, str]]:
    """Places where a file names a detector."""
    words = words_of_python(path) if path.suffix == ".py" else words_of_kernels(path)
    return {(line, word) for line, word in words if word in DETECTORS}


def files() -> list[Path]:
    """Sources in both languages."""
    return [
        path
        for folder in DETECTOR_FREE
        for path in sorted((ROOT / folder).rglob("*"))
        if path.suffix in {".py", ".cuh", ".cpp", ".h"} and not path.is_relative_to(ROOT / LEFT_OUT)
    ]


def test_no_detector_is_named() -> None:
    found = []
    for path in files():
        name = path.relative_to(ROOT).as_posix()
        found += [f"{name}:{line}: {word}" for line, word in sorted(named(path)) if word not in ALLOWED.get(name, ())]
    assert found == []


def test_what_is_allowed_is_still_needed() -> None:
    for name, words in ALLOWED.items():
        assert words == {word for _, word in named(ROOT / name)}


@pytest.mark.parametrize("text", ["velo_tracks = 1", "class VeloTrack: ...", 'name = "the VELO"', "N_UT_PLANES = 4"])
def test_names_are_found_in_every_spelling(text: str, tmp_path: Path) -> None:
    (tmp_path / "x.py").write_text(text)
    assert named(tmp_path / "x.py")
