"""Lines as recorded operations: reading gives the same line, and operations that no line records are refused."""

from __future__ import annotations

from functools import partial
from typing import Any

import numpy as np
import pytest
from hypothesis import example, given, settings
from hypothesis import strategies as st

from hltnode.processing.lhcb.chain import CHAIN
from hltnode.processing.selection.configuration.tck import TckDocument
from hltnode.processing.selection.errors import LineError
from hltnode.processing.selection.expressions.canonical import Reader, canonical
from hltnode.processing.selection.expressions.functions import where
from hltnode.processing.selection.expressions.nodes import MAX_DEPTH, Kind, Op, columns_of, constant, node, recording
from hltnode.processing.selection.expressions.units import MeV, mm
from hltnode.processing.selection.lines.inputs import any_of, count_of
from hltnode.processing.selection.lines.line import Line, line_of_content
from tests.processing.selection import toy_detector as toy
from tests.processing.selection.expressions.test_random_lines import TRUTHS, built
from tests.processing.selection.line_evaluators import Case, by_numpy

READER = Reader(
    [
        *(toy.vertex_count, toy.vertex_z, toy.track_count, toy.track_x, toy.track_pt, toy.track_y),
        *(toy.track_hits, toy.track_muon, toy.track_vertex, toy.event_number, toy.event_type),
    ]
)


def read_back(line: Line) -> Line:
    return line_of_content(line.content(), READER)


LINES = (
    Line("Constant", toy.tracks, lambda t: True, prescale=0.5),
    Line("Bool", toy.event, lambda e: where(e.n > 3, True, e.type == 1)),
    Line("Bits", toy.event, lambda e: (e.type & 0x0F) != 0),
    Line("Related", toy.muons, lambda t: t.has_vertex & (t.vertex.z > -2.5 * mm)),
    Line("Units", toy.tracks, lambda t: (t.x > 5.0 * mm) & (t.pt > 5.0 * MeV) & (t.x < t.x + 0.0 * mm)),
    Line(
        "Nested",
        toy.vertices,
        lambda v: any_of(toy.tracks, lambda t: (t.x > v.z) & (count_of(toy.muons, lambda u: u.x > t.x) >= 2)),
        postscale=0.25,
    ),
    Line("Zero", toy.tracks, lambda t: t.a / -0.0 > 1e-45),
)


@pytest.mark.parametrize("line", LINES, ids=lambda line: line.name)
def test_a_line_read_back_has_the_same_content_and_decides_alike(line: Line) -> None:
    again = read_back(line)
    assert again.content() == line.content()
    assert set(again.columns) == set(line.columns)
    columns = toy.random_events(50, 3)
    decided = [by_numpy(Case((it,), toy.EVENT_WORDS, columns, toy.limits_of(columns, 1))) for it in (line, again)]
    assert decided[0] == decided[1]


@settings(max_examples=60, deadline=None)
@given(recipes=st.lists(TRUTHS, min_size=1, max_size=4), seed=st.integers(0, 1000))
def test_random_lines_read_back_decide_alike(recipes: list[Any], seed: int) -> None:
    lines = tuple(Line(f"L{i}", toy.muons, partial(built, recipe, v=None)) for i, recipe in enumerate(recipes))
    again = tuple(read_back(line) for line in lines)
    assert [line.content() for line in again] == [line.content() for line in lines]
    columns = toy.random_events(6, seed, special=0.2)
    decided = [by_numpy(Case(it, toy.EVENT_WORDS, columns, toy.limits_of(columns, len(it)))) for it in (lines, again)]
    assert decided[0] == decided[1]


@pytest.mark.parametrize("sequence", [None, *CHAIN.sequences])
def test_every_built_in_configuration_is_given_back_by_its_document(sequence: str | None) -> None:
    trigger = CHAIN.load_trigger(None, sequence)
    document = TckDocument.from_text(CHAIN.document(trigger).text)
    again = CHAIN.trigger_of(document)
    assert CHAIN.document(again) == document
    assert set(columns_of(tuple(line.condition for line in again.lines))) == set(
        columns_of(tuple(line.condition for line in trigger.lines))
    )


@given(st.floats(width=32, allow_nan=False, allow_infinity=False))
@example(float(np.float32(0.1)))
@example(float(np.nextafter(np.float32(500), np.float32(501))))
@example(float(np.float32(1e-45)))
@example(1000000064.0)  # 8 digits are those of its neighbour
@example(float(np.finfo(np.float32).max))
def test_a_number_in_single_precision_comes_back_and_its_neighbour_has_another_text(value: float) -> None:
    def operations(of: float) -> list[str]:
        with recording():
            return canonical(node(Op.LESS, (constant(of), constant(0.5)), kind=Kind.BOOL))

    text = operations(value)
    read = Reader(()).condition(text, None)
    assert float.fromhex(str(read.args[0].payload)) == value
    neighbour = float(np.nextafter(np.float32(value), np.float32(0.0)))
    if neighbour != value:
        assert operations(neighbour) != text


def test_true_and_one_are_told_apart() -> None:
    true = Line("A", toy.event, lambda e: (e.n == 1) | True).content()
    one = Line("A", toy.event, lambda e: (e.n == 1) | (e.n == 1)).content()
    assert "CONST bool 1" in true["selection"]
    assert "CONST count 1" in true["selection"]
    assert one["selection"].count("CONST count 1") == 1


def changed(**values: object) -> dict[str, Any]:
    return LINES[3].content() | values


@pytest.mark.parametrize(
    ("selection", "message"),
    [
        ([], "the last operation must be true or false"),
        (["CONST number 1"], "the last operation must be true or false"),
        ([1], r"selection\[0\]: an operation must be a text"),
        (["EVAL bool 1"], "unknown operation 'EVAL'"),
        (["CONST bool 2"], "a number from 0 to 1"),
        (["CONST bool"], "words are missing"),
        (["CONST bool 1 0"], "a number from 0 to -1"),
        (["CONST text 1"], "a constant must be number, count or bool"),
        (["CONST number x"], "'x' is not a number"),
        (["CONST number inf"], "single precision cannot hold"),
        (["CONST number 1e39"], "single precision cannot hold"),
        (["CONST count 4294967296"], "a number from 0 to 4294967295"),
        (["CONST count -1"], "a number from 0 to"),
        (["CONST bool 1", "NOT 1"], "a number from 0 to 0"),
        (["CONST bool 1", "NOT 0 0"], "NOT of bool, bool"),
        (["CONST bool 1", "CONST count 1", "AND 0 1"], "AND of bool, count"),
        (["CONST number 1", "CONST count 1", "LESS 0 1"], "LESS of number, count"),
        (["NOT"], "NOT of nothing"),
        (["INDEX toy_tracks toy_tracks.count 3"], "a number from 0 to 2"),
        (["CONST count 5", "CONST count 0", "REMAINDER 0 1"], "REMAINDER: the divisor must be a constant other than 0"),
        (["LOAD events.type[0]", "REMAINDER 0 0"], "REMAINDER: the divisor must be a constant other than 0"),
        (["INDEX unknown toy_tracks.count 0"], "no such candidates"),
        (["INDEX toy_tracks toy_tracks.x 0"], "no such candidates"),
        (["INDEX toy_tracks toy_tracks.no 0"], "the sequence does not make toy_tracks.no"),
        (["CONST bool 1", "INDEX toy_tracks toy_tracks.count 0 0"], "INDEX has no arguments"),
        (["LOAD toy_tracks.x"], "an element of a column"),
        (["LOAD toy_tracks.x[0]"], "the number of an object"),
        (["CONST count 0", "LOAD events.type[0] 0"], "the number of an object"),
        (["CONST count 0", "LOAD toy_tracks.y[2] 0"], "a number from 0 to 1"),
        (["CONST count 0", "LOAD toy_tracks.y[0].x 0"], "unknown member"),
        (
            [
                "INDEX toy_tracks toy_tracks.count 1",
                "LOAD toy_tracks.hits[0] 0",
                "CONST count 1",
                "LESS 1 2",
            ],
            "that is not its candidate",
        ),
        (["CONST bool 1", *(f"NOT {i}" for i in range(MAX_DEPTH + 1))], "operations follow one another"),
    ],
)
def test_operations_that_no_line_records_are_refused(selection: list[Any], message: str) -> None:
    with pytest.raises(LineError, match=message):
        line_of_content(changed(selection=selection), READER)


@pytest.mark.parametrize(
    ("values", "message"),
    [
        ({"more": 1}, "fields candidates, input"),
        ({"name": 1}, "must be texts"),
        ({"name": "1"}, "a letter first"),
        ({"input": None}, "must be texts"),
        ({"candidates": "toy_tracks toy_tracks.count 1"}, "candidates: "),
        ({"candidates": "toy_tracks"}, "candidates: "),
        ({"candidates": "toy_tracks none 0"}, "the sequence does not make none"),
        ({"candidates": ""}, "that is not its candidate"),
        ({"selection": "NOT"}, "a list of operations"),
        ({"prescale": True}, "prescale: a number"),
        ({"postscale": 1.5}, "postscale: a number"),
    ],
)
def test_a_line_with_other_fields_is_refused(values: dict[str, object], message: str) -> None:
    with pytest.raises(LineError, match=message):
        line_of_content(changed(**values), READER)
