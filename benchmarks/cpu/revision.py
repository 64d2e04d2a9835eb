"""Another revision of this repository, built once per commit under build/revisions."""

import os
import shutil
import subprocess
import sys
import sysconfig
import tomllib
from dataclasses import dataclass
from pathlib import Path

REPOSITORY = Path(__file__).resolve().parents[2]
BUILT = REPOSITORY / "build" / "revisions"
VERSIONS = REPOSITORY / "benchmarks" / "versions.toml"


class RevisionError(Exception):
    """The revision is unknown to git or does not build."""


@dataclass(frozen=True, slots=True)
class Revision:
    """Settings for processes of a revision. `commit` is None for the working tree."""

    name: str
    commit: str | None
    site: Path | None
    """Folder with its package; None for the package of this environment."""

    def command(self, script: Path) -> list[str]:
        """Command that runs a script with this revision."""
        # -S: without it, the import hook of an editable install would come first.
        return [sys.executable, *([] if self.site is None else ["-S"]), str(script)]

    def environment(self) -> dict[str, str]:
        """Environment of the process."""
        if self.site is None:
            return dict(os.environ)
        return {**os.environ, "PYTHONPATH": os.pathsep.join((str(self.site), sysconfig.get_path("platlib")))}


WORKING_TREE = Revision("this", None, None)


def _git(*arguments: str) -> str:
    done = subprocess.run(["git", "-C", str(REPOSITORY), *arguments], capture_output=True, text=True)
    if done.returncode != 0:
        raise RevisionError(f"git {' '.join(arguments)}: {done.stderr.strip()}")
    return done.stdout.strip()


def versions() -> dict[str, str]:
    """The commit of each version of this software."""
    read: dict[str, str] = tomllib.loads(VERSIONS.read_text(encoding="utf-8"))
    return read


def commit_of(name: str) -> str:
    """The full hash of a version or a git revision. Raises RevisionError."""
    try:
        return _git("rev-parse", "--verify", f"{versions().get(name, name)}^{{commit}}")
    except RevisionError as error:
        known = ", ".join(versions())
        raise RevisionError(f"{name}: neither a version ({known}) nor a revision that git knows: {error}") from error


def built(name: str) -> Revision:
    """A version or a git revision, with its compiled modules. Raises RevisionError."""
    commit = commit_of(name)
    folder = BUILT / commit
    site = folder / "site"
    if not site.is_dir():
        _build(commit, folder, site)
    return Revision(name, commit, site)


def _build(commit: str, folder: Path, site: Path) -> None:
    source, unfinished = folder / "source", folder / "unfinished"
    for remains in (source, unfinished):
        shutil.rmtree(remains, ignore_errors=True)
    folder.mkdir(parents=True, exist_ok=True)
    _git("worktree", "add", "--force", "--detach", str(source), commit)
    try:
        pip = [sys.executable, "-m", "pip", "install", "--quiet", "--no-deps", "--target", str(unfinished), str(source)]
        done = subprocess.run(pip, capture_output=True, text=True)
        if done.returncode != 0:
            raise RevisionError(f"{commit} does not build:\n{done.stderr[-4000:]}")
        unfinished.rename(site)
    finally:
        _git("worktree", "remove", "--force", str(source))
