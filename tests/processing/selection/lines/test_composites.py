"""Composites on the toy detector: every evaluator against a plain loop over all pairs."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
from numpy.typing import NDArray

from hltnode.processing.framework.batch import event_flags
from hltnode.processing.framework.flags import EventFlag
from hltnode.processing.selection.errors import LineError
from hltnode.processing.selection.expressions.canonical import Reader
from hltnode.processing.selection.expressions.functions import sqrt
from hltnode.processing.selection.expressions.units import MeV, mm
from hltnode.processing.selection.lines.composite import (
    Combination,
    Composite,
    basic_columns,
    combination_of_content,
    combinations_of,
)
from hltnode.processing.selection.lines.inputs import any_of, count_of
from hltnode.processing.selection.make_composite import make_composite
from tests.processing.selection import toy_detector as toy
from tests.processing.selection.composite_evaluators import EVALUATORS

N_EVENTS = 12
BOUND = 16


def three_tracks(bound: int = BOUND) -> Composite:
    """A pair of tracks and another track: conditions on each part, on both, and a search of a collection."""
    return Composite(
        "three",
        toy.pairs,
        toy.muons,
        where=lambda p, t: (
            (p.first.pt > -5 * MeV)
            & (p.second.x * t.x > -3 * mm * mm)
            & any_of(toy.vertices, lambda v: v.z > t.x)
            & (count_of(toy.tracks) > 2)
        ),
        numbers={
            "sum": (lambda p, t: p.first.pt + p.second.pt + t.pt, "sum of pt"),
            "root": (lambda p, t: sqrt(abs(p.first.x * t.x)), "geometric mean"),
            "hits": (lambda p, t: t.hits, "hits of the track"),
        },
        bound=bound,
    )


def two_muons() -> Composite:
    """Two candidates of the same input."""
    return Composite(
        "two_muons",
        toy.muons,
        toy.muons,
        where=lambda a, b: a.pt < b.pt,
        numbers={"dx": (lambda a, b: a.x - b.x, "difference")},
        bound=100,
    )


def _made(combination: Combination, evaluator: str, columns: Any) -> list[list[tuple[Any, ...]]]:
    """For each event: flags, left out, then each candidate with its parts and numbers."""
    limits = toy.limits_of(columns, 1)
    result = EVALUATORS[evaluator](make_composite(combination), columns, limits)
    found = []
    for event in range(limits.events):
        n = int(result[combination.count.name][event])
        rows = slice(event * combination.bound, event * combination.bound + n)
        values = [result[c.name][rows] for c in (*combination.parts, *combination.columns.values())]
        bits = [v.view(np.uint32) if v.dtype == np.float32 else v for v in values]
        head = (int(result[event_flags.name][event]), int(result[combination.left_out.name][event]))
        found.append([head, *zip(*(each.tolist() for each in bits), strict=True)])
    return found


def _at(columns: Any, name: str, event: int, per_event: int, width: int = 1) -> Any:
    content = np.asarray(columns[name])
    if content.dtype.kind == "f" and name != toy.pair_tracks.name:
        content = content.astype(np.float32)
    return content[event * per_event * width : (event + 1) * per_event * width].reshape(per_event, width).squeeze()


def _expected_three(columns: Any, bound: int = BOUND) -> list[list[tuple[Any, ...]]]:
    """A plain loop over all pairs."""
    f32 = np.float32
    found = []
    for event in range(N_EVENTS):
        x, pt, muon, hits = (
            _at(columns, c.name, event, toy.MAX_TRACKS)
            for c in (toy.track_x, toy.track_pt, toy.track_muon, toy.track_hits)
        )
        z = _at(columns, toy.vertex_z.name, event, toy.MAX_VERTICES)[: columns[toy.vertex_count.name][event]]
        pairs = _at(columns, toy.pair_tracks.name, event, toy.MAX_PAIRS, 2).astype(int)
        n_tracks = columns[toy.track_count.name][event]
        rows = []
        with np.errstate(all="ignore"):
            for p in range(columns[toy.pair_count.name][event]):
                a, b = pairs[p]
                for t in range(n_tracks):
                    if (
                        muon[t]
                        and t not in (a, b)
                        and pt[a] > f32(-5)
                        and x[b] * x[t] > f32(-3)
                        and bool((z > x[t]).any())
                        and n_tracks > 2
                    ):
                        numbers = (pt[a] + pt[b] + pt[t], np.sqrt(np.abs(x[a] * x[t])), f32(hits[t]))
                        rows.append((p, t, *(int(f32(v).view(np.uint32)) for v in numbers)))
        flags = int(EventFlag.OVERFLOW) if len(rows) > bound else 0
        found.append([(flags, max(len(rows) - bound, 0)), *rows[:bound]])
    return found


@pytest.fixture(scope="module")
def columns() -> dict[str, NDArray[Any]]:
    return toy.random_events(N_EVENTS, seed=5, special=0.02)


@pytest.mark.parametrize("evaluator", EVALUATORS)
def test_each_evaluator_makes_the_pairs_of_a_plain_loop_in_its_order(evaluator: str, columns: Any) -> None:
    expected = _expected_three(columns)
    assert {len(event) > BOUND for event in expected} == {True, False}
    assert sum(len(event) - 1 for event in expected) > 50
    assert _nan_as_one(_made(three_tracks().combination, evaluator, columns)) == _nan_as_one(expected)


def _nan_as_one(found: list[list[tuple[Any, ...]]]) -> list[list[tuple[Any, ...]]]:
    """NaN of any sign and payload as one value: processors give different ones."""
    one = 0x7FC00000
    return [
        [
            event[0],
            *(
                tuple(one if k > 1 and v & 0x7FFFFFFF > 0x7F800000 else v for k, v in enumerate(row))
                for row in event[1:]
            ),
        ]
        for event in found
    ]


@pytest.mark.parametrize("evaluator", EVALUATORS)
def test_two_candidates_of_one_input_make_each_pair_once(evaluator: str, columns: Any) -> None:
    expected = []
    for event in range(N_EVENTS):
        pt, muon, x = (_at(columns, c.name, event, toy.MAX_TRACKS) for c in (toy.track_pt, toy.track_muon, toy.track_x))
        n = columns[toy.track_count.name][event]
        with np.errstate(all="ignore"):
            rows = [
                (a, b, int((x[a] - x[b]).view(np.uint32)))
                for a in range(n)
                for b in range(a + 1, n)
                if muon[a] and muon[b] and pt[a] < pt[b]
            ]
        expected.append([(int(EventFlag.OVERFLOW) if len(rows) > 100 else 0, max(len(rows) - 100, 0)), *rows[:100]])
    assert sum(len(event) - 1 for event in expected) > 50
    assert _nan_as_one(_made(two_muons().combination, evaluator, columns)) == _nan_as_one(expected)


def _simple(**changed: Any) -> Composite:
    given: dict[str, Any] = {
        "name": "simple",
        "first": toy.pairs,
        "second": toy.muons,
        "where": lambda p, t: p.first.pt > t.pt,
        "numbers": {"dx": (lambda p, t: p.first.x - t.x, "difference")},
        "bound": 8,
    }
    return Composite(**{**given, **changed})


@pytest.mark.parametrize(
    ("changed", "message"),
    [
        ({"name": "Big"}, "a name of at most 40 lower-case letters"),
        ({"bound": 0}, "bound: a number of candidates from 1 to 4096 is expected, not 0"),
        ({"bound": 5000}, "bound: a number of candidates from 1 to 4096 is expected, not 5000"),
        ({"bound": True}, "bound: a number of candidates"),
        ({"numbers": {}}, "numbers: 1 to 32 are expected, there are 0"),
        ({"numbers": {"first": (lambda p, t: t.x, "")}}, "numbers: 'first' cannot be the name of a number"),
        ({"numbers": {"double": (lambda p, t: t.x, "")}}, "numbers: 'double' cannot be the name of a number"),
        ({"numbers": {"nullptr": (lambda p, t: t.x, "")}}, "numbers: 'nullptr' cannot be the name of a number"),
        ({"numbers": {"dx": lambda p, t: t.x}}, "numbers: 'dx': a function of both parts and a description"),
        ({"numbers": {"dx": (lambda p, t: t.x, 7)}}, "numbers: 'dx': a function of both parts and a description"),
        ({"numbers": {"dx": (lambda p, t: t.x > p.first.x, "")}}, "dx: a number takes numbers, not true or false"),
        ({"numbers": [1]}, "numbers: functions and descriptions by name are expected"),
        ({"where": lambda p, t: t.x}, "the condition of a composite takes a condition"),
        ({"where": lambda p, t: p.third.x > t.x}, "field 'third': pairs have no such field"),
        ({"where": lambda p, t: p.first.x > t.pt}, "> with"),
        ({"second": toy.event}, "two inputs with candidates are expected, such as long_tracks, not <input events>"),
        ({"first": 5}, "two inputs with candidates are expected, such as long_tracks, not 5"),
        (
            {"where": lambda p, t: any_of(toy.tracks, lambda o: any_of(toy.vertices, lambda v: v.z > o.x))},
            "loops over more than 2 nested collections",
        ),
    ],
)
def test_a_wrong_declaration_is_refused_with_the_name_of_the_composite(changed: Any, message: str) -> None:
    with pytest.raises(LineError) as error:
        _simple(**changed)
    assert str(error.value).startswith("composite ")
    assert message in str(error.value)


def test_parts_come_before_their_wholes_and_lead_to_the_columns_of_the_sequence() -> None:
    inner = _simple(name="inner")
    outer = _simple(name="outer", first=inner, where=lambda c, t: c.dx > t.x, numbers={"y": (lambda c, t: c.dx, "")})
    assert [each.name for each in combinations_of([outer.combination.count])] == ["inner", "outer"]
    names = {column.name for column in basic_columns([outer.combination.count])}
    assert names >= {"toy_pairs.count", "toy_tracks.count", "toy_tracks.pt", "toy_tracks.x", "toy_pairs.tracks"}
    assert not any("composite" in name for name in names)


def test_two_composites_of_one_name_are_refused() -> None:
    one, other = _simple(), _simple(bound=9)
    with pytest.raises(LineError, match="two composites have the name simple"):
        combinations_of([one.combination.count, other.combination.count])


def test_a_composite_that_reads_another_one_of_its_own_name_is_refused() -> None:
    inner = _simple()
    outer = _simple(first=inner, where=lambda c, t: c.dx > t.x, numbers={"y": (lambda c, t: c.dx, "")})
    with pytest.raises(LineError, match="two composites have the name simple"):
        combinations_of([outer.combination.count])


def _reader(*more: Composite) -> Reader:
    columns = [c for each in (three_tracks(), *more) for c in basic_columns(each.combination.reads)]
    return Reader((*columns, toy.vertex_z))


def test_a_composite_comes_back_from_its_content_with_the_same_candidates(columns: Any) -> None:
    made = three_tracks()
    again = combination_of_content(made.combination.content(), _reader())
    assert again.content() == made.combination.content()
    assert _made(again, "numpy", columns) == _made(made.combination, "numpy", columns)


@pytest.mark.parametrize(
    ("changed", "message"),
    [
        ({"bound": "8"}, "bound: a number of candidates"),
        ({"bound": None}, "bound: a number of candidates"),
        ({"name": 7}, "a name of at most 40"),
        ({"first": "toy_tracks toy_tracks.count 1"}, "first: collection, column of its counts and 0 are expected"),
        ({"second": 3}, "second: collection, column of its counts and 1 are expected"),
        ({"numbers": {"dx": []}}, "numbers: a list of names and operations is expected"),
        ({"numbers": [["dx", ["CONST number 1"]], ["dx", ["CONST number 2"]]]}, "numbers: a name is given twice"),
        ({"numbers": [["dx", ["CONST bool 1"]]]}, "the last operation must be a number"),
        ({"condition": ["CONST number 1"]}, "the last operation must be true or false"),
        ({"condition": "x"}, "a list of operations is expected"),
        (
            {"condition": ["INDEX toy_vertices toy_vertices.count 2", "CONST count 1", "LESS 0 1"]},
            "it depends on an object of toy_vertices",
        ),
        ({"first": "composite_simple composite_simple.count 0"}, "the sequence does not make composite_simple.count"),
    ],
)
def test_damaged_content_is_refused_with_the_name_of_the_composite(changed: Any, message: str) -> None:
    content = {**_simple().combination.content(), **changed}
    with pytest.raises(LineError) as error:
        combination_of_content(content, _reader(_simple()))
    assert str(error.value).startswith("composite ")
    assert message in str(error.value)
    with pytest.raises(LineError, match="an object with the fields bound, condition, first, name"):
        combination_of_content({"name": "x"}, _reader())


@pytest.mark.parametrize("evaluator", ["numpy", "blocks of 32"])
def test_only_an_event_with_more_than_the_bound_is_flagged(evaluator: str, columns: Any) -> None:
    most = max(len(event) - 1 for event in _expected_three(columns, 10_000))
    for bound, head in ((most, (0, 0)), (most - 1, (int(EventFlag.OVERFLOW), 1))):
        heads = [event[0] for event in _made(three_tracks(bound).combination, evaluator, columns)]
        assert max(heads) == head
