"""Tables of the HTML reports: sortable and filterable, with rows of zeros folded."""

from collections.abc import Sequence
from dataclasses import dataclass


@dataclass(frozen=True, slots=True)
class Cell:
    """A cell whose rows are sorted by `value` instead of the number at the start of its text."""

    text: str
    value: float | None = None


@dataclass(frozen=True, slots=True)
class Row:
    """A row of a table, its name first; `differs` highlights it, `zero` folds it away until the reader asks for it."""

    cells: Sequence[str | Cell]
    differs: bool = False
    zero: bool = False


@dataclass(frozen=True, slots=True)
class Table:
    """A table under a title. heads: titles of the columns with their units. total: a last row that is not sorted."""

    title: str
    heads: Sequence[str]
    rows: Sequence[Row]
    note: str = ""
    total: Row | None = None


def percent(rate: float | None) -> str:
    """A rate in per cent, or a dash if there is no rate."""
    return "–" if rate is None else f"{100 * rate:.2f}"


def value_with_errors(value: float | None, low: float, high: float, digits: int = 1) -> Cell:
    """A value and the distances to the ends of its interval; a dash without a value."""
    if value is None:
        return Cell("–")
    return Cell(f"{value:.{digits}f} +{high - value:.{digits}f} −{value - low:.{digits}f}", value)
