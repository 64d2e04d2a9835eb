"""Tables of the HTML reports: sortable and filterable, with rows of zeros folded."""

from collections.abc import Collection, Sequence
from dataclasses import dataclass, replace


@dataclass(frozen=True, slots=True)
class Cell:
    """A cell whose rows are sorted by `value` instead of the number at the start of its text.

    share: length of a bar behind the text, from 0 to 1; None: no bar.
    """

    text: str
    value: float | None = None
    share: float | None = None


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


def with_bars(rows: Sequence[Row], columns: Collection[int]) -> list[Row]:
    """The rows with bars in some columns: the largest value of a column has a full bar, negative values have none."""
    largest = {
        column: max((_value(row.cells[column]) for row in rows if column < len(row.cells)), default=0.0)
        for column in columns
    }

    def barred(column: int, cell: str | Cell) -> str | Cell:
        value = _value(cell)
        if not largest.get(column, 0.0) > 0.0 or not isinstance(cell, Cell) or cell.value is None:
            return cell
        return replace(cell, share=max(0.0, value / largest[column]))

    return [replace(row, cells=[barred(i, cell) for i, cell in enumerate(row.cells)]) for row in rows]


def _value(cell: str | Cell) -> float:
    return cell.value if isinstance(cell, Cell) and cell.value is not None else 0.0


def percent(rate: float | None) -> str:
    """A rate in per cent, or a dash if there is no rate."""
    return "–" if rate is None else f"{100 * rate:.2f}"


def value_with_errors(value: float | None, low: float, high: float, digits: int = 1) -> Cell:
    """A value and the distances to the ends of its interval; a dash without a value."""
    if value is None:
        return Cell("–")
    return Cell(f"{value:.{digits}f} +{high - value:.{digits}f} −{value - low:.{digits}f}", value)
