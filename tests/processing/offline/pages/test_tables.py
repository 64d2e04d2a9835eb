"""Tables of the HTML reports."""

from collections.abc import Sequence

from hltnode.processing.offline.pages.tables import Cell, Row, with_bars


def shares(rows: Sequence[Row]) -> list[float | None]:
    return [cell.share if isinstance(cell, Cell) else None for row in rows for cell in row.cells]


def test_bars_compare_the_values_of_a_column_with_its_largest_one() -> None:
    rows = [Row(["a", Cell("4", 4.0), Cell("9", 9.0)]), Row(["b", Cell("1", 1.0), Cell("9", 9.0)], zero=True)]
    barred = with_bars(rows, [1])
    assert shares(barred) == [None, 1.0, None, None, 0.25, None]
    assert [(row.cells[0], row.zero) for row in barred] == [("a", False), ("b", True)]
    assert shares(rows) == [None] * 6


def test_cells_without_a_value_and_columns_of_zeros_have_no_bar() -> None:
    rows = [Row(["a", Cell("–"), Cell("0", 0.0), "7"]), Row(["b", Cell("2", 2.0), Cell("-1", -1.0), "8"])]
    assert shares(with_bars(rows, [0, 1, 2, 3])) == [None, None, None, None, None, 1.0, None, None]
    assert shares(with_bars([Row(["a", Cell("-1", -1.0)]), Row(["b", Cell("2", 2.0)])], [1])) == [None, 0.0, None, 1.0]
    assert with_bars([], [1]) == []
