"""Package, chart, citation, changelog and pages have the same version; each version has its commit."""

from __future__ import annotations

import importlib.metadata
import itertools
import os
import re
import subprocess
import sys
import tomllib
from pathlib import Path
from typing import Any

import pytest
import yaml

import hltnode
from benchmarks.cpu.revision import RevisionError, commit_of, versions

ROOT = Path(__file__).resolve().parents[2]
PROJECT: dict[str, Any] = tomllib.loads((ROOT / "pyproject.toml").read_text(encoding="utf-8"))["project"]
CHANGELOG = (ROOT / "CHANGELOG.md").read_text(encoding="utf-8")
SECTION = re.compile(r"^## \[(\d+\.\d+\.\d+)\] - (\d{4}-\d{2}-\d{2})$", re.MULTILINE)
KINDS = ("Added", "Changed", "Deprecated", "Removed", "Fixed", "Security")
"""The kinds of changes of Keep a Changelog."""


def _git(*arguments: str) -> str:
    done = subprocess.run(["git", "-C", str(ROOT), *arguments], capture_output=True, text=True, check=False)
    if done.returncode != 0:
        pytest.skip(f"no history here: {done.stderr.strip()}")
    return done.stdout.strip()


def test_the_package_has_the_version_of_its_metadata() -> None:
    assert hltnode.__version__ == PROJECT["version"] == importlib.metadata.version("hltnode")


def test_the_c_library_has_the_version_of_the_package() -> None:
    header = (ROOT / "client" / "c" / "hltnode_client.h").read_text(encoding="utf-8")
    assert re.findall(r'#define HLTNODE_CLIENT_VERSION "(.*)"', header) == [PROJECT["version"]]


def test_the_package_imports_nothing() -> None:
    """Each command imports it first, so an import here would slow down all commands."""
    program = "import sys; before = set(sys.modules); import hltnode; print(*sorted(set(sys.modules) - before))"
    # -S: the hook of an editable install imports its own modules.
    done = subprocess.run(
        [sys.executable, "-S", "-c", program],
        env={**os.environ, "PYTHONPATH": str(ROOT / "library")}, capture_output=True, text=True, check=True,
    )  # fmt: skip
    assert done.stdout.split() == ["hltnode"]


def test_the_citation_has_the_version_the_date_and_the_licence_of_the_package() -> None:
    citation = yaml.safe_load((ROOT / "CITATION.cff").read_text(encoding="utf-8"))
    assert citation["cff-version"] == "1.2.0"
    assert citation["version"] == PROJECT["version"]
    assert citation["license"] == PROJECT["license"]
    assert [author["name"] for author in citation["authors"]] == [author["name"] for author in PROJECT["authors"]]
    assert (citation["version"], str(citation["date-released"])) == SECTION.findall(CHANGELOG)[0]


def test_a_page_that_names_the_debian_package_names_this_version() -> None:
    named = {
        (page.name, version)
        for page in [ROOT / "README.md", *(ROOT / "docs").rglob("*.md")]
        for version in re.findall(r"hltnode_([\d.]+)_\w+\.deb", page.read_text(encoding="utf-8"))
    }
    assert named
    assert {version for _, version in named} == {PROJECT["version"]}, named


def test_the_changelog_has_dated_sections_in_falling_order_with_known_kinds_of_changes() -> None:
    headings = re.findall(r"^## (.+)$", CHANGELOG, re.MULTILINE)
    dated = SECTION.findall(CHANGELOG)
    assert headings == ["[Unreleased]", *(f"[{version}] - {date}" for version, date in dated), "Compare versions"]
    numbers = [tuple(map(int, version.split("."))) for version, _ in dated]
    assert numbers == sorted(numbers, reverse=True)
    kinds = set(re.findall(r"^### (.+)$", CHANGELOG, re.MULTILINE))
    assert {kind for kind in kinds if not kind.startswith("Where things went")} <= set(KINDS)


def test_the_changelog_compares_each_version_with_the_one_before_by_its_commit() -> None:
    ranges = dict(re.findall(r"^\| (\d+\.\d+\.\d+) \| `git log (?:--\S+ )*(\S+)` \|", CHANGELOG, re.MULTILINE))
    released = versions()
    names = list(released)
    expected = {names[0]: released[names[0]][:8]}
    for before, after in itertools.pairwise(names):
        expected[after] = f"{released[before][:8]}..{released[after][:8]}"
    newest = SECTION.findall(CHANGELOG)[0][0]
    if newest not in released:
        expected[newest] = f"{released[names[-1]][:8]}.."
    assert ranges == expected


def test_every_version_of_the_changelog_but_the_newest_has_a_commit() -> None:
    newest, *others = (version for version, _ in SECTION.findall(CHANGELOG))
    assert [version for version in versions() if version != newest] == others[::-1]


@pytest.mark.parametrize("version", versions())
def test_the_commit_of_a_version_is_in_the_history_and_has_that_version(version: str) -> None:
    if _git("rev-parse", "--is-shallow-repository") == "true":
        pytest.skip("a shallow clone has no earlier commits")
    commit = versions()[version]
    assert commit_of(version) == commit
    assert subprocess.run(["git", "-C", str(ROOT), "merge-base", "--is-ancestor", commit, "HEAD"]).returncode == 0
    project = tomllib.loads(_git("show", f"{commit}:pyproject.toml"))["project"]
    assert project["version"] == version


def test_a_name_that_is_neither_version_nor_revision_is_refused_with_the_known_versions() -> None:
    with pytest.raises(RevisionError, match=r"9\.9\.9: neither a version \(0\.1\.0, .*\) nor a revision"):
        commit_of("9.9.9")


def test_continuous_integration_runs_the_script_of_the_repository_on_each_supported_python() -> None:
    workflow = yaml.safe_load((ROOT / ".github" / "workflows" / "ci.yml").read_text(encoding="utf-8"))
    [job] = workflow["jobs"].values()
    assert ".ci/run" in [step.get("run") for step in job["steps"]]
    lowest = PROJECT["requires-python"].removeprefix(">=")
    assert job["strategy"]["matrix"]["python"][0] == lowest
    assert "make check\nmake test\n" in (ROOT / ".ci" / "run").read_text(encoding="utf-8")


def test_dependabot_reads_folders_that_exist() -> None:
    updates = yaml.safe_load((ROOT / ".github" / "dependabot.yml").read_text(encoding="utf-8"))["updates"]
    assert updates
    assert all((ROOT / update["directory"].lstrip("/")).is_dir() for update in updates)


def test_the_project_names_no_address_that_is_a_placeholder() -> None:
    addresses = PROJECT.get("urls", {}).values()
    assert not [url for url in addresses if re.search(r"example|todo|placeholder|<|your", url, re.IGNORECASE)]
