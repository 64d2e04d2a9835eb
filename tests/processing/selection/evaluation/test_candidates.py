"""Candidates that lines select, and their constituents, compared with plain loops."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
from numpy.typing import NDArray

from hltnode.processing.framework.collections import Column
from hltnode.processing.selection.evaluation.candidates import candidates_of, columns_of_candidates, constituents
from hltnode.processing.selection.evaluation.lines import Evaluator
from hltnode.processing.selection.expressions.units import GeV
from hltnode.processing.selection.lines.line import Line
from tests.processing.selection import toy_detector as toy

N_EVENTS = 50
TRACKS = Line("Tracks", toy.muons, lambda t: t.pt > 0.1 * GeV)
PAIRS = Line("Pairs", toy.pairs, lambda p: p.first.pt > 0.01 * GeV)
EVENTS = Line("Events", toy.event, lambda e: e.n > 3)


@pytest.fixture(scope="module")
def given() -> dict[str, NDArray[Any]]:
    return toy.random_events(N_EVENTS, 5)


@pytest.fixture(scope="module")
def columns(given: dict[str, NDArray[Any]]) -> dict[Column, NDArray[Any]]:
    return {
        column: given[column.name].astype(column.dtype)
        for column in columns_of_candidates((TRACKS, PAIRS), toy.REPORTS)
    }


def test_selected_candidates_are_those_that_a_loop_finds(
    given: dict[str, NDArray[Any]], columns: dict[Column, NDArray[Any]]
) -> None:
    found = candidates_of(TRACKS, Evaluator(columns, N_EVENTS))
    expected = [
        (event, number)
        for event in range(N_EVENTS)
        for number in range(given["toy_tracks.count"][event])
        if given["toy_tracks.muon"][event * toy.MAX_TRACKS + number]
        and given["toy_tracks.pt"][event * toy.MAX_TRACKS + number] > np.float32(100.0)
    ]
    assert list(zip(found.event.tolist(), found.number.tolist(), strict=True)) == expected
    assert len(expected) > 10
    alone = constituents(found, toy.REPORTS, columns, N_EVENTS)
    assert (alone.collection, alone.number.tolist()) == (toy.tracks.collection, found.number.tolist())
    assert alone.candidate.tolist() == list(range(len(expected)))


def test_pairs_consist_of_the_tracks_that_they_name(
    given: dict[str, NDArray[Any]], columns: dict[Column, NDArray[Any]]
) -> None:
    found = candidates_of(PAIRS, Evaluator(columns, N_EVENTS))
    assert len(found.event) > 10
    made_of = constituents(found, toy.REPORTS, columns, N_EVENTS)
    assert made_of.collection is toy.tracks.collection
    expected = []
    for row, (event, number) in enumerate(zip(found.event, found.number, strict=True)):
        at = 2 * (event * toy.MAX_PAIRS + number)
        expected += [(row, track) for track in given["toy_pairs.tracks"][at : at + 2].tolist()]
    assert list(zip(made_of.candidate.tolist(), made_of.number.tolist(), strict=True)) == expected


def test_a_line_on_whole_events_has_no_candidates(columns: dict[Column, NDArray[Any]]) -> None:
    with pytest.raises(ValueError, match="line Events selects events"):
        candidates_of(EVENTS, Evaluator(columns, N_EVENTS))
