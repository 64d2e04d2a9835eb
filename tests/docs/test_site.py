"""The documentation site builds without warnings, needs no network, and has the content of the repository."""

from __future__ import annotations

import os
import re
import subprocess
import sys
from collections import Counter
from pathlib import Path

import pytest
from markdown_it import MarkdownIt

ROOT = Path(__file__).resolve().parents[2]
ALERTS = ROOT / "deploy" / "prometheus" / "alerts.yml"
OUTSIDE = {
    "index.html": "README.md",
    "project/contributing.html": "CONTRIBUTING.md",
    "project/security.html": "SECURITY.md",
    "project/changelog.html": "CHANGELOG.md",
    "project/examples.html": "examples/README.md",
    "project/benchmarks.html": "benchmarks/README.md",
}
LOADED = re.compile(r"<(?:script|img|iframe|source)\b[^>]*\bsrc=\"([^\"]+)\"|<link\b[^>]*\bhref=\"([^\"]+)\"")
TAG = re.compile(r"<(h[1-6]|li|table|tr)\b")


@pytest.fixture(scope="module")
def site(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("site")
    done = subprocess.run(
        [Path(sys.executable).with_name("mkdocs"), "build", "--quiet", "--strict", "--site-dir", folder],
        cwd=ROOT, env={**os.environ, "NO_MKDOCS_2_WARNING": "1"}, capture_output=True, text=True, check=False,
    )  # fmt: skip
    assert done.returncode == 0, done.stderr
    return folder


def _sources(site: Path) -> dict[Path, Path]:
    """Each page of the site with its source file."""
    pages = {site / page: ROOT / source for page, source in OUTSIDE.items()}
    for source in (ROOT / "docs").rglob("*.md"):
        page = site / source.relative_to(ROOT / "docs").with_suffix(".html")
        pages[page.with_name("index.html") if page.stem == "README" else page] = source
    return pages


def test_every_page_is_there_and_loads_nothing_from_elsewhere(site: Path) -> None:
    for page in _sources(site):
        html = page.read_text(encoding="utf-8")
        loaded = [script or link for script, link in LOADED.findall(html)]
        assert loaded
        assert not [address for address in loaded if re.match(r"(https?:)?//", address)], page


def test_every_style_sheet_has_its_fonts_and_pictures_with_it(site: Path) -> None:
    sheets = list(site.rglob("*.css"))
    assert sheets
    for sheet in sheets:
        assert not re.search(r"url\(\s*['\"]?(https?:)?//", sheet.read_text(encoding="utf-8")), sheet


def test_headings_lists_and_tables_are_those_that_the_repository_shows(site: Path) -> None:
    """MkDocs needs four blanks inside a list item, where others accept three, and an empty line before a list."""
    in_repository = MarkdownIt("commonmark").enable("table")
    differ = []
    for page, source in _sources(site).items():
        [article] = re.findall(r"<article\b.*?</article>", page.read_text(encoding="utf-8"), re.DOTALL)
        article = re.sub(r"<(nav|pre)\b.*?</\1>", "", article, flags=re.DOTALL)
        expected = Counter(TAG.findall(in_repository.render(source.read_text(encoding="utf-8"))))
        found = Counter(TAG.findall(article))
        if found != expected:
            differ.append(f"{source.relative_to(ROOT)}: missing {expected - found}, more {found - expected}")
    assert not differ, "\n".join(differ)


def test_every_page_and_section_that_an_alert_links_to_is_there(site: Path) -> None:
    links = re.findall(r"hltnode_docs_url `[^`]+` \}\}/([\w/.-]+)#([\w-]+)", ALERTS.read_text(encoding="utf-8"))
    assert len(links) > 30
    pages = {page: (site / page).read_text(encoding="utf-8") for page, _ in links}
    assert not [anchor for page, anchor in links if f'id="{anchor}"' not in pages[page]]
