"""Results of changes: kept in a file as they come, and the table of them."""

from __future__ import annotations

import json
import os
from collections.abc import Iterable, Sequence
from dataclasses import asdict, dataclass
from enum import StrEnum, unique
from pathlib import Path

from tools.mutants.change_list import Change


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
    """The outcome of one change. `by`: the first test that failed. `seconds`: duration of the tests."""

    name: str
    outcome: Outcome
    by: str
    seconds: float


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
    rows = ["| room | changes | noticed | survived | not built |", "|---|---|---|---|---|"]
    done = [change for change in changes if change.name in results]
    for room in (*sorted({change.room for change in done}), "all"):
        outcomes = [results[change.name].outcome for change in done if room in (change.room, "all")]
        counts = (
            len(outcomes),
            sum(outcome in NOTICED for outcome in outcomes),
            outcomes.count(Outcome.SURVIVED),
            outcomes.count(Outcome.NOT_BUILT),
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
