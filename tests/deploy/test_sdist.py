"""The source distribution holds what git tracks, and its page on an index works without the files beside it."""

from __future__ import annotations

import email
import email.message
import re
import subprocess
import sys
import tarfile
import tomllib
from pathlib import Path

import pytest

ROOT = Path(__file__).resolve().parents[2]
LEFT_OUT: dict[str, str] = {}
"""Tracked files that the sdist lacks, with the reason. It lacks none."""
ADDED = {"PKG-INFO": "metadata for the index"}
BUILD = """
import functools, gzip, sys
from scikit_build_core.build import build_sdist
# The best compression, the default, takes four times as long.
gzip.GzipFile = functools.partial(gzip.GzipFile, compresslevel=1)
build_sdist(sys.argv[1])
"""

pytestmark = [pytest.mark.process, pytest.mark.expensive("compresses 30 MB of sources")]


@pytest.fixture(scope="module")
def sdist(tmp_path_factory: pytest.TempPathFactory) -> tarfile.TarFile:
    folder = tmp_path_factory.mktemp("sdist")
    subprocess.run([sys.executable, "-c", BUILD, str(folder)], cwd=ROOT, capture_output=True, check=True, timeout=170)
    [path] = folder.glob("hltnode-*.tar.gz")
    return tarfile.open(path)


def page(sdist: tarfile.TarFile) -> email.message.Message:
    [name] = [name for name in sdist.getnames() if re.fullmatch(r"[^/]+/PKG-INFO", name)]
    member = sdist.extractfile(name)
    assert member is not None
    return email.message_from_bytes(member.read())


def test_an_sdist_has_every_tracked_file(sdist: tarfile.TarFile) -> None:
    listed = subprocess.run(["git", "-C", str(ROOT), "ls-files", "-z"], capture_output=True, text=True, check=False)
    if listed.returncode != 0:
        pytest.skip(f"no git here: {listed.stderr.strip()}")
    # A file that is deleted and not committed yet is still listed.
    tracked = {name for name in listed.stdout.split("\0") if name and (ROOT / name).is_file()}
    held = {member.name.partition("/")[2] for member in sdist.getmembers() if not member.isdir()}
    missing = sorted(tracked - held - LEFT_OUT.keys())
    assert not missing, f"the sdist lacks {missing}: mend sdist.exclude, or add them to LEFT_OUT with the reason"
    assert not tracked & held & LEFT_OUT.keys()
    untracked = subprocess.run(
        ["git", "-C", str(ROOT), "ls-files", "-z", "--others", "--exclude-standard"],
        capture_output=True, text=True, check=True,
    ).stdout.split("\0")  # fmt: skip
    assert held - tracked - set(untracked) == ADDED.keys()


def test_links_of_the_page_are_absolute_and_name_files_of_the_sdist(sdist: tarfile.TarFile) -> None:
    metadata = page(sdist)
    assert metadata["Description-Content-Type"] == "text/markdown"
    version = tomllib.loads((ROOT / "pyproject.toml").read_text(encoding="utf-8"))["project"]["version"]
    text = str(metadata.get_payload())
    links = re.findall(r"\]\(([^)]*)\)", text)
    of_readme = re.findall(r"\]\(([^)]*)\)", (ROOT / "README.md").read_text(encoding="utf-8"))
    assert len(links) == len(of_readme) > 40
    base = re.compile(rf"https://[^/]+/(?:blob|raw)/v{re.escape(version)}/([^#]+)")
    for link, source in zip(links, of_readme, strict=True):
        if source.startswith("https://"):
            assert link == source
            continue
        named = base.match(link)
        assert named is not None, link
        assert (ROOT / named[1]).exists(), link
        assert ("/raw/" in link) == source.endswith((".png", ".svg")), link
    assert "<!-- test:" not in text
