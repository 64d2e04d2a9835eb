"""Lines: allowed expressions, error messages, and equality."""

from __future__ import annotations

import math
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from hltnode.processing.selection.errors import HistogramError, LineError
from hltnode.processing.selection.expressions.functions import log, sqrt, where
from hltnode.processing.selection.expressions.nodes import MAX_DEPTH, MAX_NODES
from hltnode.processing.selection.expressions.units import GeV, MeV, m, mm, um
from hltnode.processing.selection.lines.histogram import Histogram
from hltnode.processing.selection.lines.inputs import any_of, count_of
from hltnode.processing.selection.lines.line import Line
from hltnode.processing.selection.select_lines import select_lines
from tests.processing.selection import toy_detector as toy
from tests.processing.selection.toy_detector import event, tracks

HERE = Path(__file__).name


def chain_of(n: int) -> Callable[[Any], Any]:
    """A selection with a chain of n operations."""

    def selects(t: Any) -> Any:
        value = t.a
        for _ in range(n):
            value = value + 1
        return value > 0

    return selects


def doubled(n: int) -> Callable[[Any], Any]:
    """A selection whose text would have 2^n terms."""

    def selects(t: Any) -> Any:
        value = t.a
        for _ in range(n):
            value = value + value
        return value > 0

    return selects


@pytest.mark.parametrize(
    ("selection", "message"),
    [
        (lambda t: t.ptt > 1 * GeV, "field 'ptt': tracks have no such field; the nearest are pt"),
        (lambda t: t.zzzz > 1, "field 'zzzz': tracks have no such field; there are x, pt, a, b"),
        (lambda t: t.vertex.zz > 0, "field 'zz': vertices have no such field; the nearest are z"),
        (lambda t: t.pt > 1.5, "> with MeV and no unit: give the number a unit, such as 1.5 * MeV"),
        (lambda t: t.pt > t.x, "> with MeV and mm: they cannot be compared or added"),
        (lambda t: t.pt + t.a > 0, "+ with MeV and no unit"),
        (lambda t: log(t.pt) > 2, "log of a value in MeV: divide it by a unit first, such as log(x / GeV)"),
        (lambda t: where(t.a > 0, t.x, t.pt) > 0, "where with MeV and mm"),
        (lambda t: t.pt, "the selection of a line must be true or false, this one is a number"),
        (lambda t: t.hits, "the selection of a line must be true or false, this one is a count or bits"),
        (lambda t: "pt > 1", "a line cannot compute with 'pt > 1'"),
        (lambda t: None, "a line cannot compute with None"),
        (lambda t: 0 < t.a < 1, "a selection cannot branch on a value that is known in each event only: write & | ~"),
        (lambda t: t.a > 0 and t.b > 0, "a selection cannot branch"),
        (lambda t: max(t.a, t.b) > 0, "a selection cannot branch on a value"),
        (lambda t: math.log(t.a) > 0, "the functions of math and numpy cannot be used on values of events"),
        (lambda t: (t.a > 0) & t.b, "& takes a condition, such as a comparison in parentheses, not a number"),
        (lambda t: (t.a > 0) + 1 > 0, "+ takes numbers, not true or false"),
        (lambda t: t.a > float("nan"), "a constant that single precision cannot hold"),
        (lambda t: t.a > 1e39, "a constant that single precision cannot hold"),
        (lambda t: t.a**1.5 > 1, "power 1.5: 0.5 or an integer from 2 to 8 is expected"),
        (lambda t: count_of(event, lambda e: e.n > 1) > 1, "count_of: candidates are expected, not events"),
        (chain_of(MAX_DEPTH), f"more than {MAX_DEPTH} operations follow one another"),
        (doubled(10_000), f"more than {MAX_DEPTH} operations follow one another"),
        (lambda t: [t.a + i for i in range(MAX_NODES)] and t.a > 0, f"more than {MAX_NODES} operations"),
    ],
)
def test_errors_name_the_line_what_is_wrong_and_the_place(selection: Callable[[Any], Any], message: str) -> None:
    with pytest.raises(LineError) as caught:
        Line("Hlt1Mine", tracks, selection)
    text = str(caught.value)
    assert text.startswith(f"line Hlt1Mine: {message}")
    assert f"({HERE}:" in text


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        ({"prescale": 1.1}, "prescale: a number from 0 to 1 is expected, not 1.1"),
        ({"postscale": -0.1}, "postscale: a number from 0 to 1 is expected, not -0.1"),
        ({"postscale": math.nan}, "postscale: a number from 0 to 1 is expected, not nan"),
        ({"prescale": "1"}, "prescale: a number from 0 to 1 is expected, not '1'"),
        ({"name": "has blank"}, "a name of at most 120 letters, digits and _, a letter first, is expected"),
        ({"name": "x" * 121}, "a name of at most 120 letters"),
        ({"input": "tracks"}, "input: candidates are expected, such as long_tracks, not 'tracks'"),
    ],
)
def test_what_stands_beside_the_selection_is_checked(arguments: dict[str, Any], message: str) -> None:
    fields: dict[str, Any] = {"name": "Mine", "input": tracks, "selection": lambda t: t.a > 0}
    with pytest.raises(LineError) as caught:
        Line(**fields | arguments)
    assert message in str(caught.value)
    assert len(str(caught.value)) < 300
    assert f"({HERE}:" in str(caught.value)


def test_a_candidate_that_has_left_its_line_is_refused() -> None:
    kept: list[Any] = []

    def keeps(t: Any) -> Any:
        kept.append(t)
        return t.a > 0

    Line("First", tracks, keeps)
    with pytest.raises(LineError, match=rf"line Other: it depends on an object of \w+ .* \({HERE}:"):
        Line("Other", event, lambda _: kept[0].a > 0)
    with pytest.raises(LineError, match="line Inner: it depends on an object of"):
        Line("Inner", event, lambda _: any_of(tracks, keeps) & (kept[-1].a > 0))
    with pytest.raises(HistogramError, match="histogram h: it depends on an object of"):
        Histogram("h", lambda _: kept[0].a, 10, 0, 1, of=event)


def test_functions_of_numpy_are_refused_with_what_to_use_instead() -> None:
    with pytest.raises(LineError, match=rf"line Mine: the functions of math and numpy .* \({HERE}:\d+\)"):
        Line("Mine", tracks, lambda t: np.log(t.a) > 0)


def test_an_error_points_at_the_line_of_the_source() -> None:
    def selects(t: Any) -> Any:
        good = t.a > 0
        return good & (t.bb > 0)

    first = selects.__code__.co_firstlineno
    with pytest.raises(LineError, match=rf"the nearest are b \({HERE}:{first + 2}\)"):
        Line("Mine", tracks, selects)


def test_a_large_expression_of_shared_parts_is_as_large_as_its_parts() -> None:
    line = Line("Mine", tracks, doubled(MAX_DEPTH - 10))
    assert len(line.content()["selection"]) < MAX_DEPTH + 10
    assert len(str(select_lines([line], toy.EVENT_WORDS, toy.REPORTS).generated)) < 100_000


def test_units_are_numbers_of_the_same_thing() -> None:
    metres = Line("A", tracks, lambda t: t.x > 0.001 * m)
    assert metres == Line("A", tracks, lambda t: t.x > 1 * mm)
    assert metres == Line("A", tracks, lambda t: t.x > 1000 * um)
    assert metres != Line("A", tracks, lambda t: t.x > 1.001 * mm)
    assert Line("A", tracks, lambda t: sqrt(t.pt * t.pt) > 2 * GeV) == Line(
        "A", tracks, lambda t: sqrt(t.pt**2) > 2000 * MeV
    )
    assert Line("A", tracks, lambda t: t.pt > 0) == Line("A", tracks, lambda t: t.pt > 0.0)


def test_numbers_of_numpy_are_numbers() -> None:
    assert Line("A", tracks, lambda t: np.float64(0.5) * t.a > np.int64(3)) == Line(
        "A", tracks, lambda t: 0.5 * t.a > 3
    )


def test_lines_are_equal_if_they_decide_by_the_same_operations() -> None:
    line = Line("A", tracks, lambda t: t.a > 1, description="one")
    assert line == Line("A", tracks, lambda track: track.a > 1, description="another")
    assert line != Line("A", tracks, lambda t: t.a > 1, prescale=0.5)
    assert line != Line("A", toy.muons, lambda t: t.a > 1)
    assert line.content() == Line("A", tracks, lambda t: t.a > 1).content()


def test_what_lines_share_is_computed_once() -> None:
    def above(threshold: float) -> Callable[[Any], Any]:
        return lambda t: log(t.a) + t.b > threshold

    lines = [Line(f"L{i}", tracks, above(1.0 * i)) for i in range(20)]
    generated = select_lines(lines, toy.EVENT_WORDS, toy.REPORTS).generated
    assert generated is not None
    assert generated.body.count("natural_logarithm(") == 1
    assert generated.body.count("for (uint32_t i0") == 1


def test_collections_inside_one_another_are_bounded() -> None:
    """Triples of tracks for each track would be billions of combinations in a large event."""

    def pairs(t: Any) -> Any:
        return any_of(tracks, lambda s: any_of(tracks, lambda u: u.a + s.a > t.a))

    def triples(t: Any) -> Any:
        return any_of(tracks, lambda s: any_of(tracks, lambda u: count_of(tracks, lambda v: v.a > u.a + s.a) > 2))

    assert Line("Pairs", tracks, pairs).content()
    with pytest.raises(LineError, match=rf"line Triples: count_of: loops over more than 2 nested .*\({HERE}:\d+\)"):
        Line("Triples", tracks, triples)
