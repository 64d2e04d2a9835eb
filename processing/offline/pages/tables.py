"""Tables of the HTML reports."""

from collections.abc import Sequence
from dataclasses import dataclass


@dataclass(frozen=True, slots=True)
class Row:
    """A row of a table; `differs` highlights it."""

    cells: Sequence[str]
    differs: bool = False


@dataclass(frozen=True, slots=True)
class Table:
    """A table under a title."""

    title: str
    heads: Sequence[str]
    rows: Sequence[Row]


def percent(rate: float | None) -> str:
    """A rate in per cent, or a dash if there is no rate."""
    return "–" if rate is None else f"{100 * rate:.2f}"
