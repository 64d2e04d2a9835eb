"""Objects that lines selected in accepted events: every evaluator writes the words of a slow oracle."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any

import numpy as np
import pytest
from numpy.typing import NDArray

from hltnode.processing.framework.flags import EventFlag
from hltnode.processing.selection.expressions.units import MeV, mm
from hltnode.processing.selection.lines.line import Line
from tests.processing.selection import toy_detector as toy
from tests.processing.selection.line_evaluators import ALL, Case, Decided, assert_all_decide_alike
from tests.processing.selection.reports import selected_oracle as oracle

pytestmark = pytest.mark.timeout(300)
"""The first test compiles the machine that runs PTX."""

tracks, muons, pairs, vertices, event = toy.tracks, toy.muons, toy.pairs, toy.vertices, toy.event

Selection = Callable[[Any], Any]


def above(pt: float) -> Selection:
    """Tracks above a pt (MeV)."""
    return lambda t: t.pt > pt * MeV


def with_hits(least: int) -> Selection:
    """Pairs whose first track has this number of hits or up to 7 more."""
    return lambda p: (p.first.hits >= least) & (p.first.hits < least + 8)


FEW = (
    Line("Event", event, lambda e: e.n > 20, prescale=0.4),
    Line("Track", tracks, lambda t: t.pt > 10 * MeV),
    Line("Pair", pairs, lambda p: (p.first.pt > 20 * MeV) & (p.second.hits > 5)),
    Line("Muon", muons, lambda t: (t.pt > 5 * MeV) & (t.hits < 15), postscale=0.5),
    Line("Vertex", vertices, lambda v: v.z > 0 * mm, prescale=0.3),
    *(Line(f"Rare{i}", tracks, above(50.0 + i)) for i in range(30)),
    Line("LastPair", pairs, lambda p: p.first.pt > 100 * MeV),
)
"""Lines on values of vertices, which are not reported."""
MANY = (
    Line("Half", tracks, lambda t: t.hits > 20),
    Line("All", tracks, lambda t: t.hits >= 0),
    *(Line(f"Pairs{i}", pairs, with_hits(8 * i)) for i in range(5)),
    Line("AllMuons", muons, lambda t: t.hits >= 0),
)
"""More candidates than a line may report; some events exceed the limit on objects, others the limit on words."""


def case_of(lines: tuple[Line, ...], n_events: int, seed: int) -> Case:
    columns = toy.random_events(n_events, seed, special=0.0)
    return Case(lines, toy.EVENT_WORDS, columns, toy.limits_of(columns, len(lines)))


def objects_of(columns: Mapping[str, NDArray[Any]], number: int) -> dict[oracle.Key, oracle.Reported]:
    """All tracks and pairs of an event."""
    found = {}
    hit_ids = columns["toy_hits.id"][number * toy.MAX_HITS :][: toy.MAX_HITS].tolist()
    begin = number * toy.MAX_TRACKS
    x = columns["toy_tracks.x"]
    for i in range(int(columns["toy_tracks.count"][number])):
        at = begin + i
        near = columns["toy_tracks.near"][toy.MAX_NEAR * at :][: columns["toy_tracks.n_near"][at]].tolist()
        partner = begin + int(columns["toy_tracks.partner"][at])
        far = [hit for hit in columns["toy_tracks.far"][3 * partner :][:3].tolist() if hit != 0xFFFF]
        numbers = (float(x[at]), float(columns["toy_tracks.pt"][at]), 2 * float(columns["toy_tracks.hits"][at]) - 1.5)
        found["tracks", i] = oracle.Reported(10010, numbers, tuple(hit_ids[hit] for hit in (*near, *far)))
    for i in range(int(columns["toy_pairs.count"][number])):
        first, second = columns["toy_pairs.tracks"][2 * (number * toy.MAX_PAIRS + i) :][:2].astype(int).tolist()
        difference = float(np.float32(x[begin + first]) - np.float32(x[begin + second]))
        found["pairs", i] = oracle.Reported(10030, (difference,), parts=(("tracks", first), ("tracks", second)))
    return found


def selects(name: str, columns: Mapping[str, NDArray[Any]], number: int, i: int) -> bool:
    """Whether a line selects a track or pair, in plain Python."""
    at = number * toy.MAX_TRACKS + i % toy.MAX_TRACKS
    pt, hits = columns["toy_tracks.pt"], columns["toy_tracks.hits"]
    of_pair = columns["toy_pairs.tracks"][2 * (number * toy.MAX_PAIRS + i % toy.MAX_PAIRS) :][:2]
    first, second = (number * toy.MAX_TRACKS + of_pair).astype(int)
    muon = columns["toy_tracks.muon"][at] == 1
    if name.startswith("Rare"):
        return bool(pt[at] > 50 + int(name[4:]))
    if name.startswith("Pairs"):
        return int(hits[first]) // 8 == int(name[5:])
    return bool(
        {
            "Track": pt[at] > 10,
            "Pair": pt[first] > 20 and hits[second] > 5,
            "Muon": muon and pt[at] > 5 and hits[at] < 15,
            "LastPair": pt[first] > 100,
            "Half": hits[at] > 20,
            "All": True,
            "AllMuons": muon,
        }[name]
    )


def expected_of(case: Case, decided: Decided, number: int) -> tuple[Any, ...]:
    """The decoded words of an accepted event."""
    objects = objects_of(case.columns, number)
    candidates = []
    for place, line in enumerate(case.lines):
        kind = {tracks.collection: "tracks", pairs.collection: "pairs"}.get(line.input.collection, "")
        if kind and decided.masks[number] >> place & 1:
            n = int(case.columns[f"toy_{kind}.count"][number])
            candidates += [(place, (kind, i)) for i in range(n) if selects(line.name, case.columns, number, i)]
    event = oracle.select(candidates, objects)
    return oracle.by_number(event, objects), event.candidates, event.left_out


@pytest.mark.parametrize("lines", [FEW, MANY])
def test_what_lines_select_is_written_as_the_oracle_says(lines: tuple[Line, ...]) -> None:
    case = case_of(lines, 40, seed=2)
    decided = assert_all_decide_alike(case, ALL)
    n_candidates = left_out = 0
    for number, row in enumerate(decided.selected):
        if not decided.accepted[number]:
            assert len(row) == 0
            continue
        expected = expected_of(case, decided, number)
        assert oracle.read(row) == expected, number
        assert bool(decided.flags[number] & EventFlag.CANDIDATES_LEFT_OUT) == (expected[2] > 0)
        n_candidates += len(expected[1])
        left_out += expected[2]
    assert n_candidates > 200
    assert (left_out > 200) == (lines is MANY)
    assert 0 < sum(decided.accepted) <= 40


def test_events_that_are_not_accepted_are_neither_written_nor_flagged() -> None:
    case = case_of((Line("Never", tracks, lambda t: t.hits >= 0, postscale=0.0),), 10, seed=1)
    decided = assert_all_decide_alike(case, ALL)
    assert decided.flags == [0] * 10
    assert not any(len(row) for row in decided.selected)
