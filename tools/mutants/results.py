"""Results of changes: kept in a file as they come, told from those of other code, and the table of them."""

from __future__ import annotations

import json
import os
import subprocess
from collections.abc import Callable, Iterable, Sequence
from dataclasses import asdict, dataclass
from enum import StrEnum, unique
from functools import cache
from pathlib import Path

from tools.mutants.change_list import Change

ObjectsOf = Callable[[Iterable[str]], dict[str, str]]
"""Gives git's objects of paths."""


@unique
class Outcome(StrEnum):
    """What became of a change."""

    NOTICED = "noticed"
    HUNG = "noticed: hung"
    SURVIVED = "survived"
    NOT_BUILT = "not built"


NOTICED = frozenset({Outcome.NOTICED, Outcome.HUNG})


@dataclass(frozen=True, slots=True)
class Result:
    """The outcome of one change.

    by: the first test that failed. seconds: duration of the tests. digest: that of the change. objects: git's object of
    each path that decided, see `deciding_paths`.
    """

    name: str
    outcome: Outcome
    by: str
    seconds: float
    digest: str
    objects: dict[str, str]


def deciding_paths(change: Change, by: str) -> tuple[str, ...]:
    """The paths below the root that a result depends on: the room, and the file of the test that failed.

    Where no test is known to have failed, any test of the change may notice it after a change of its own.
    """
    tests = (by.split("::")[0],) if by else tuple(f"tests/{path}".rstrip("/") for path in change.tests)
    return (change.room, *tests)


def git_objects(root: Path) -> ObjectsOf:
    """A function that gives git's objects of paths in the commit that is checked out at `root`.

    A path that is not in the commit has no object.
    """

    @cache
    def object_of(path: str) -> str:
        command = ["git", "rev-parse", "--quiet", "--verify", f"HEAD:{path}"]
        return subprocess.run(command, cwd=root, text=True, capture_output=True, check=False).stdout.strip()

    return lambda paths: {path: object_of(path) for path in paths}


def results_of_this_code(
    changes: Iterable[Change], results: dict[str, Result], objects_of: ObjectsOf
) -> dict[str, Result]:
    """The results of changes whose room, deciding tests and entry in the list are as they were."""
    kept = {}
    for change in changes:
        result = results.get(change.name)
        if result and result.digest == change.digest:
            paths = deciding_paths(change, result.by)
            if result.objects == objects_of(paths):
                kept[change.name] = result
    return kept


def read_results(path: Path) -> dict[str, Result]:
    """The results in a file, by name of the change; empty without a file."""
    if not path.is_file():
        return {}
    rows = json.loads(path.read_text(encoding="utf-8"))
    return {row["name"]: Result(**{**row, "outcome": Outcome(row["outcome"])}) for row in rows}


def write_results(path: Path, results: Iterable[Result]) -> None:
    """Replace the file, so that a run that is cut off leaves the results so far."""
    path.parent.mkdir(parents=True, exist_ok=True)
    new = path.with_name(path.name + ".new")
    new.write_text(json.dumps([asdict(result) for result in results], indent=1) + "\n", encoding="utf-8")
    os.replace(new, path)


def table(changes: Sequence[Change], results: dict[str, Result]) -> str:
    """The counts of each room, and the survivors with their explanations, as Markdown."""
    rows = ["| room | changes | noticed | survived | not built | not run |", "|---|---|---|---|---|---|"]
    done = [change for change in changes if change.name in results]
    for room in (*sorted({change.room for change in changes}), "all"):
        of_room = [change for change in changes if room in (change.room, "all")]
        outcomes = [results[change.name].outcome for change in of_room if change.name in results]
        counts = (
            len(of_room),
            sum(outcome in NOTICED for outcome in outcomes),
            outcomes.count(Outcome.SURVIVED),
            outcomes.count(Outcome.NOT_BUILT),
            len(of_room) - len(outcomes),
        )
        rows.append(f"| {room} | " + " | ".join(map(str, counts)) + " |")
    survivors = [
        f"- {change.name} ({change.file}): {change.meaning}. {change.survives or 'NOT EXPLAINED.'}"
        for change in done
        if results[change.name].outcome is Outcome.SURVIVED
    ]
    return "\n".join([*rows, "", *(survivors or ["No change survived."])])


def share_noticed(changes: Sequence[Change], results: dict[str, Result]) -> float:
    """Share of noticed changes among those that were built; 1 without any."""
    outcomes = [results[change.name].outcome for change in changes if change.name in results]
    built = [outcome for outcome in outcomes if outcome is not Outcome.NOT_BUILT]
    return sum(outcome in NOTICED for outcome in built) / len(built) if built else 1.0
