"""The list of wrong changes (changes.toml): what each replaces, and the tests that should notice it."""

from __future__ import annotations

import hashlib
import tomllib
from collections import Counter
from collections.abc import Iterable
from dataclasses import dataclass
from pathlib import Path, PurePosixPath
from typing import Any

ROOT = Path(__file__).resolve().parents[2]
LIST = Path(__file__).with_name("changes.toml")

# Folders whose rooms lie one level deeper than elsewhere.
_DEEP = PurePosixPath("processing/lhcb")
_NATIVE = frozenset({".cpp", ".cuh", ".h"})


class ChangeListError(Exception):
    """The list does not fit the tree; the message has one line for each fault."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Change:
    """A wrong change of one place in one file.

    name: unique in the list. file: path below the root. old: the text to replace, which occurs once in the file. new:
    the text in its place. meaning: what is wrong then. tests: paths below tests/. only: expression for `pytest -k`.
    survives: why no test can notice the change; empty for a change that must be noticed.
    """

    name: str
    file: str
    old: str
    new: str
    meaning: str
    tests: tuple[str, ...]
    only: str = ""
    survives: str = ""

    @property
    def room(self) -> str:
        """The folder of the file, two levels deep, or three in a chain."""
        folder = PurePosixPath(self.file).parent
        depth = 3 if folder.is_relative_to(_DEEP) else 2
        return "/".join(folder.parts[:depth])

    @property
    def is_native(self) -> bool:
        """Whether the change needs a build."""
        return PurePosixPath(self.file).suffix in _NATIVE

    @property
    def selection(self) -> tuple[str, ...]:
        """The arguments for pytest that select the tests."""
        return (*(f"tests/{path}" for path in self.tests), *(("-k", self.only) if self.only else ()))

    @property
    def digest(self) -> str:
        """Differs where the change itself or the selection of its tests differs."""
        text = "\0".join((self.file, self.old, self.new, *self.selection))
        return hashlib.sha256(text.encode()).hexdigest()[:16]

    def apply(self, root: Path) -> None:
        """Make the change in the tree at `root`."""
        path = root / self.file
        path.write_text(path.read_text(encoding="utf-8").replace(self.old, self.new), encoding="utf-8")


def load(path: Path = LIST) -> list[Change]:
    """The changes of a list. Raises ChangeListError for an unknown or a missing key."""
    entries: list[dict[str, Any]] = tomllib.loads(path.read_text(encoding="utf-8"))["change"]
    changes = []
    for entry in entries:
        try:
            changes.append(Change(**{**entry, "tests": tuple(entry["tests"])}))
        except (KeyError, TypeError) as error:
            raise ChangeListError(f"{entry.get('name', entry)}: {error}") from error
    return changes


def check(changes: Iterable[Change], root: Path = ROOT) -> None:
    """Raise ChangeListError if a change does not fit the tree at `root`."""
    changes = list(changes)
    faults = [f"{name}: two changes have this name" for name, n in Counter(c.name for c in changes).items() if n > 1]
    for change in changes:
        path = root / change.file
        if not path.is_file():
            faults.append(f"{change.name}: {change.file} does not exist")
            continue
        n = path.read_text(encoding="utf-8").count(change.old)
        if n != 1:
            faults.append(f"{change.name}: expected the old text once in {change.file}, found it {n} times")
        if change.old == change.new:
            faults.append(f"{change.name}: the new text is the old one")
        if not change.tests:
            faults.append(f"{change.name}: no tests are named")
        faults += [
            f"{change.name}: tests/{each} does not exist"
            for each in change.tests
            if not (root / "tests" / each).exists()
        ]
    if faults:
        raise ChangeListError("\n".join(faults))
