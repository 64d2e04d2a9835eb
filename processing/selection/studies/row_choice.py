"""Which rows of a table are shown, and in which order. JSON results always have all rows."""

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from enum import StrEnum, unique
from fnmatch import fnmatchcase
from typing import Any

from hltnode.processing.framework.near_names import nearest

Result = tuple[str, dict[str, Any]]
"""Name of a configuration, and its JSON object with the key `lines`."""

Rates = Mapping[str, tuple[float, ...]]
"""Numbers of each row: the first orders the rows; a row whose numbers are all 0 is one of zeros."""


@unique
class Order(StrEnum):
    """Order of rows."""

    RATE = "rate"
    """Highest rate or efficiency first."""
    NAME = "name"


@dataclass(frozen=True, slots=True, kw_only=True)
class RowChoice:
    """A choice of rows.

    patterns: with * and ? for any characters; a row is shown if its name matches one of them, or if there is none.
    nonzero: leave out rows of zeros. order: None keeps the order of the table.
    """

    patterns: tuple[str, ...] = ()
    nonzero: bool = False
    order: Order | None = None

    def check(self, names: Sequence[str]) -> None:
        """Raise ValueError for a pattern that no name matches; it lists the nearest names."""
        for pattern in self.patterns:
            if not any(fnmatchcase(name, pattern) for name in names):
                raise ValueError(f"--lines {pattern}: no line matches; {nearest(pattern, names)}")

    def matches(self, name: str) -> bool:
        """Whether a name matches a pattern."""
        return not self.patterns or any(fnmatchcase(name, pattern) for pattern in self.patterns)

    def names(self, rates: Rates) -> list[str]:
        """The names of the rows to show, in their order; rows of the same rate keep theirs."""
        chosen = [name for name, of in rates.items() if self.matches(name) and (any(of) or not self.nonzero)]
        if self.order is Order.NAME:
            return sorted(chosen)
        if self.order is Order.RATE:
            return sorted(chosen, key=lambda name: rates[name][:1], reverse=True)
        return chosen


EVERYTHING = RowChoice()


def chosen_lines(
    choice: RowChoice, results: Sequence[Result], rates_of: Callable[[dict[str, Any]], tuple[float, ...]]
) -> list[Result]:
    """The results with the chosen lines only, in the chosen order; the first result with a line gives its rate.

    rates_of: the numbers of a line, from its JSON object. The numbers of all lines together stay those of all lines.
    """
    every: dict[str, list[tuple[float, ...]]] = {}
    for _, result in results:
        for name, of in result["lines"].items():
            every.setdefault(name, []).append(rates_of(of))
    # A line is one of zeros if it is in all configurations.
    rates = {name: (found[0][0], *(number for of in found for number in of)) for name, found in every.items()}
    names = choice.names(rates)
    return [(of, _with_lines(result, [name for name in names if name in result["lines"]])) for of, result in results]


def _with_lines(result: dict[str, Any], names: Sequence[str]) -> dict[str, Any]:
    chosen = result | {"lines": {name: result["lines"][name] for name in names}}
    if "overlap" in result:
        overlap = result["overlap"]
        places = [overlap["lines"].index(name) for name in names]
        chosen["overlap"] = {
            key: list(names) if key == "lines" else [[of[row][column] for column in places] for row in places]
            for key, of in overlap.items()
        }
    return chosen


def left_out_text(before: Sequence[Result], after: Sequence[Result]) -> str:
    """A sentence on lines that are not shown; empty if all are."""
    n, shown = ({name for _, result in results for name in result["lines"]} for results in (before, after))
    return "" if len(n) == len(shown) else f"{len(shown)} of {len(n)} lines are shown; totals are those of all lines"


def with_note(text: str, note: str) -> str:
    """Tables with a sentence below them, if there is one."""
    return f"{text}\n\n{note}" if note else text


def rates_of_line(of: dict[str, Any]) -> tuple[float, ...]:
    """The numbers of a line of `hltnode rates`."""
    return (of["rate_hz"],)


def efficiencies_of_line(of: dict[str, Any]) -> tuple[float, ...]:
    """The numbers of a line of `hltnode efficiency`; an empty denominator counts as 0."""
    return of["efficiency"] or 0.0, of["of_all"]["efficiency"] or 0.0
