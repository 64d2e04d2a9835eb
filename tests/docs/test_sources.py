"""The repository stands alone: it cites only published papers and its own files."""

from __future__ import annotations

import os
import re
from collections.abc import Iterator
from pathlib import Path

ROOT = Path(__file__).resolve().parents[2]

SUFFIXES = {
    ".c", ".cpp", ".cuh", ".h", ".html", ".json", ".md", ".py", ".pyi", ".service", ".sh", ".toml", ".txt", ".yaml",
    ".yml",
}  # fmt: skip
NAMES = {"Makefile", "Dockerfile.cpu", "Dockerfile.cuda", "CMakeLists.txt"}

# Documents that readers do not have, a folder beside the repository, numbers of an issue tracker.
OUTSIDE = re.compile(
    r"(?<![\w/-])formats\.md|(?<![\w/-])(style|layout|design)\.md|reconstruction-facts|hlt1-allen|ccl-velo|daq-practice"
    r"|simulation-fidelity|gpu-trigger|alice-tpc|\b[iI]ssues?\s+#?\d|\(#\d+\)|(?<!\w)shared/"
)
LINK = re.compile(r"\]\(([^)\s]+)\)")
TEST_FILE = re.compile(r"`(tests/[\w/]+(?:\.py)?)[`:]")
PAGE = re.compile(r"\bdocs/[\w./-]+\.md\b")
WITH_EXAMPLE = Path("docs/how-to/write-an-algorithm.md")
"""A reader who follows it writes its files."""
FENCE = re.compile(r"^```.*?^```", re.MULTILINE | re.DOTALL)


def _texts() -> Iterator[tuple[Path, str]]:
    """Every text file of the repository except this one: its path from the root, and its content."""
    hidden = {"build", "demo-output", "node_modules", "__pycache__"}
    for folder, folders, names in os.walk(ROOT):
        folders[:] = [name for name in folders if not name.startswith(".") and name not in hidden]
        for path in (Path(folder, name) for name in names):
            if path != Path(__file__).resolve() and (path.suffix in SUFFIXES or path.name in NAMES):
                yield path.relative_to(ROOT), path.read_text(encoding="utf-8")


def _anchors(page: str) -> set[str]:
    """The anchors of the headings of a page, by GitHub's rules."""
    headings = re.findall(r"^#+ +(.+?) *$", FENCE.sub("", page), re.MULTILINE)
    return {re.sub(r"[^\w\- ]", "", heading.lower()).replace(" ", "-") for heading in headings}


def test_nothing_cites_a_document_that_is_not_in_the_repository() -> None:
    found = [
        f"{path}:{number}: {line.strip()[:100]}"
        for path, text in _texts()
        for number, line in enumerate(text.splitlines(), 1)
        if OUTSIDE.search(line)
    ]
    assert not found, "\n".join(found)


def test_every_relative_link_of_a_page_leads_to_a_file_and_a_heading_of_it() -> None:
    broken = []
    for path, text in _texts():
        if path.suffix != ".md":
            continue
        for target in LINK.findall(FENCE.sub("", text)):
            if re.match(r"[a-z]+:", target):
                continue
            file, _, anchor = target.partition("#")
            page = (ROOT / path.parent / file).resolve() if file else ROOT / path
            if not page.exists() or (anchor and anchor not in _anchors(page.read_text(encoding="utf-8"))):
                broken.append(f"{path}: {target}")
    assert not broken, "\n".join(broken)


def test_every_page_that_code_or_text_names_is_there() -> None:
    missing = [
        f"{path}: {page}" for path, text in _texts() for page in PAGE.findall(text) if not (ROOT / page).is_file()
    ]
    assert not missing, "\n".join(missing)


def test_every_test_that_a_page_names_is_there() -> None:
    missing = [
        f"{path}: {named}"
        for path, text in _texts()
        if path.suffix == ".md" and path.name != "CHANGELOG.md" and path != WITH_EXAMPLE
        for named in TEST_FILE.findall(text)
        if not (ROOT / named).exists()
    ]
    assert not missing, "\n".join(missing)


def test_every_page_of_formats_physics_and_decisions_is_in_its_index() -> None:
    for folder in (ROOT / "docs/formats", ROOT / "docs/physics", ROOT / "docs/decisions"):
        listed = set(LINK.findall((folder / "README.md").read_text(encoding="utf-8")))
        pages = {page.name for page in folder.glob("*.md")} - {"README.md"}
        assert pages <= listed, f"{folder.name}: {sorted(pages - listed)} not in the index"


def test_decisions_are_listed_once_and_in_their_order() -> None:
    rows = re.findall(r"^\| (\d+) \| \[.*\]\((\d+)-", (ROOT / "docs/decisions/README.md").read_text("utf-8"), re.M)
    numbers = [int(number) for number, _ in rows]
    assert numbers == sorted(set(numbers))
    assert numbers == [int(page) for _, page in rows]
    assert len(numbers) == len(list((ROOT / "docs/decisions").glob("0*.md")))
