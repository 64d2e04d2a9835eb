"""Choice and order of the lines of tables."""

from __future__ import annotations

from typing import Any

import pytest

from hltnode.processing.selection.studies.row_choice import (
    Order,
    RowChoice,
    chosen_lines,
    left_out_text,
    rates_of_line,
)

RATES = {"Hlt1Muon": (5.0,), "Hlt1TrackMVA": (20.0,), "Hlt1Empty": (0.0,), "Hlt1DiMuon": (20.0,)}


@pytest.mark.parametrize(
    ("choice", "names"),
    [
        (RowChoice(), ["Hlt1Muon", "Hlt1TrackMVA", "Hlt1Empty", "Hlt1DiMuon"]),
        (RowChoice(order=Order.RATE), ["Hlt1TrackMVA", "Hlt1DiMuon", "Hlt1Muon", "Hlt1Empty"]),
        (RowChoice(order=Order.NAME), ["Hlt1DiMuon", "Hlt1Empty", "Hlt1Muon", "Hlt1TrackMVA"]),
        (RowChoice(nonzero=True), ["Hlt1Muon", "Hlt1TrackMVA", "Hlt1DiMuon"]),
        (RowChoice(patterns=("*Muon", "Hlt1Empt?")), ["Hlt1Muon", "Hlt1Empty", "Hlt1DiMuon"]),
        (RowChoice(patterns=("*Muon",), nonzero=True, order=Order.RATE), ["Hlt1DiMuon", "Hlt1Muon"]),
    ],
)
def test_lines_are_chosen_by_name_and_rate_and_ordered(choice: RowChoice, names: list[str]) -> None:
    assert choice.names(RATES) == names


def test_a_pattern_without_a_line_is_refused_with_the_nearest_names() -> None:
    RowChoice(patterns=("*Muon",)).check(list(RATES))
    with pytest.raises(ValueError, match=r"--lines Hlt1Moun: no line matches; the nearest are Hlt1Muon"):
        RowChoice(patterns=("*Muon", "Hlt1Moun")).check(list(RATES))


def result(**rates: float) -> dict[str, Any]:
    """Line i is selected by i + 1 events of its own, and by ten more together with each other line."""
    n = len(rates)
    events = [[i + 1 if i == j else 10 * i + j for j in range(n)] for i in range(n)]
    return {
        "lines": {name: {"rate_hz": rate} for name, rate in rates.items()},
        "overlap": {"lines": list(rates), "events": events},
    }


def test_the_overlap_has_the_chosen_lines_in_their_order_and_the_input_stays() -> None:
    first = result(a=1.0, b=3.0, c=0.0)
    ((_, found),) = chosen_lines(RowChoice(nonzero=True, order=Order.RATE), [("x", first)], rates_of_line)
    assert list(found["lines"]) == found["overlap"]["lines"] == ["b", "a"]
    assert found["overlap"]["events"] == [[2, 10], [1, 1]]
    assert list(first["lines"]) == ["a", "b", "c"]
    text = left_out_text([("x", first)], [("x", found)])
    assert text == "2 of 3 lines are shown; totals are those of all lines"
    assert left_out_text([("x", first)], [("x", first)]) == ""


def test_a_line_of_two_configurations_is_one_of_zeros_if_it_is_in_both() -> None:
    results = [("x", result(a=0.0, b=0.0)), ("y", result(a=0.0, b=2.0, c=5.0))]
    found = chosen_lines(RowChoice(nonzero=True, order=Order.RATE), results, rates_of_line)
    assert [list(of["lines"]) for _, of in found] == [["b"], ["c", "b"]]
