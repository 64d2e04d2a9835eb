"""Lines give the decisions of plain Python by NumPy, compiled for the CPU, in blocks of many threads and by PTX."""

from __future__ import annotations

import math
import tracemalloc
from collections.abc import Callable, Sequence
from functools import partial
from typing import Any

import numpy as np
import pytest
from numpy.typing import NDArray

from hltnode.processing.selection.evaluation import lines as evaluation
from hltnode.processing.selection.expressions.functions import atan2, exp, log, maximum, minimum, sqrt, where
from hltnode.processing.selection.expressions.units import GeV, MeV, mm
from hltnode.processing.selection.lines.inputs import all_of, any_of, count_of
from hltnode.processing.selection.lines.line import Line
from tests.processing.selection import toy_detector as toy
from tests.processing.selection.line_evaluators import (
    ALL,
    Case,
    Decided,
    assert_all_decide_alike,
    by_compiler,
    by_numpy,
    by_ptx,
    targets,
)

pytestmark = pytest.mark.timeout(300)
"""The first test compiles the machine that runs PTX."""

tracks, muons, vertices, event = toy.tracks, toy.muons, toy.vertices, toy.event


def case_of(lines: Sequence[Line], n_events: int = 30, seed: int = 1, special: float = 0.1) -> Case:
    columns = toy.random_events(n_events, seed, special=special)
    return Case(tuple(lines), toy.EVENT_WORDS, columns, toy.limits_of(columns, len(lines)))


LINES = (
    Line("Cut", tracks, lambda t: (t.x > 0.5 * mm) & (t.pt < 2 * GeV)),
    Line("Or", tracks, lambda t: (t.x > 100 * mm) | ~(t.pt < 2 * GeV)),
    Line("Log", tracks, lambda t: log(t.pt / MeV) > 2.5),
    Line("Exp", tracks, lambda t: exp(t.a) > 7.389),
    Line("Root", tracks, lambda t: sqrt(t.x * t.x + t.x**2) > 3 * mm),
    Line("Angle", tracks, lambda t: atan2(t.a, t.b) / atan2(0.001, 1.0) > 1200.0),
    Line("Extremes", tracks, lambda t: (minimum(t.a, t.b) > -0.5) & (maximum(t.a, t.b, 0.25) < 3)),
    Line("Where", tracks, lambda t: where(t.pt > 1 * GeV, t.x, -t.x) > 40 * mm),
    Line("Quotient", tracks, lambda t: (t.x / t.pt) * (1 * GeV / mm) - abs(t.a) > 0.25),
    Line("Hits", tracks, lambda t: (t.hits >= 38) & (t.hits != 39)),
    Line("Mixed", tracks, lambda t: t.hits * 0.5 + t.a > 19),
    Line("Muons", muons, lambda t: t.pt > 5 * GeV),
    Line("Vertex", tracks, lambda t: t.has_vertex & (t.vertex.z > 100 * mm) & (t.pt > 100 * MeV)),
    Line("NoVertex", tracks, lambda t: ~t.has_vertex & (t.pt > 2 * GeV)),
    Line("Near", tracks, lambda t: any_of(vertices, lambda v: abs(v.z - t.x) < 0.01 * mm)),
    Line("Far", tracks, lambda t: all_of(vertices, lambda v: abs(v.z - t.x) > 1000 * mm) & (t.hits == 7)),
    Line("Closer", tracks, lambda t: count_of(vertices, lambda v: v.z < t.x) == 8),
    Line("Number", event, lambda e: count_of(tracks, lambda t: t.pt > 1 * GeV) >= 1),
    Line("Relative", event, lambda e: count_of(muons) * 2 > e.n * 1.1),
    Line("Twice", event, lambda e: count_of(tracks, lambda t: (t.hits > 20) & (count_of(muons) >= 12)) > 10),
    Line("Pairs", tracks, lambda t: any_of(tracks, lambda s: (s.hits == t.hits) & (s.x > t.x * 90))),
    Line("Bits", event, lambda e: (e.type & 0x0101) == 0x0101),
    Line("Remainder", event, lambda e: (e.number % 7 == 3) | (e.type % 2 == 0) & (e.number % 1 != 0)),
    Line("Every", event, lambda e: True),
    Line("None", event, lambda e: False),
    Line("Half", event, lambda e: True, prescale=0.5),
    Line("Third", tracks, lambda t: t.a > 0, prescale=0.6, postscale=0.5),
)  # fmt: skip


NESTED = (
    Line(
        "Nested", tracks, lambda t: any_of(tracks, lambda s: any_of(muons, lambda u: (u.x + s.x > t.x) & (u.a < s.b)))
    ),
    Line("Counted", event, lambda e: count_of(tracks, lambda t: count_of(vertices, lambda v: v.z < t.x) > 3) > 2),
)


@pytest.mark.parametrize("lines", [LINES, NESTED])
def test_without_a_compiler_memory_is_bounded_and_decisions_stay(
    lines: tuple[Line, ...], monkeypatch: pytest.MonkeyPatch
) -> None:
    """Vectorised work is divided into blocks: events, and the objects of the loops of each candidate."""

    def decided_and_peak() -> tuple[Decided, int]:
        tracemalloc.start()
        decided = by_numpy(case)
        peak = tracemalloc.get_traced_memory()[1]
        tracemalloc.stop()
        return decided, peak

    case = case_of(lines, 100, seed=4)
    whole, most = decided_and_peak()
    monkeypatch.setattr(evaluation, "MAX_VALUES", 20_000)
    in_pieces, peak = decided_and_peak()
    assert in_pieces == whole
    assert sum(whole.accepted) > 0
    assert peak < most / 2 or lines is LINES, "pairs of tracks have most of the values"


def costly(t: Any, number: int = 0) -> Any:
    """A number with far more operations than the kernel computes for refused candidates; different numbers share no
    operations."""
    value = t.a + number
    for step in range(30):
        value = maximum(value * t.b - step, minimum(value, t.x / mm)) + exp(-abs(value)) * 0.5
    return value


def condition_of_first(t: Any) -> Any:
    return (t.hits > 20) & (costly(t) > 3)


COSTLY = (
    Line("First", tracks, condition_of_first),
    Line("Shared", tracks, lambda t: (t.hits < 10) & (costly(t) < 1000)),
    Line("OfAnother", tracks, lambda t: (t.hits > 20) & ~condition_of_first(t) & (t.a > 0)),
    Line("Alone", muons, lambda t: (t.pt > 100 * MeV) & (costly(t) + t.pt / GeV > 3)),
    Line("Never", muons, lambda t: (t.hits > 1000) & (costly(t) > -1000)),
    Line("Only", tracks, lambda t: costly(t) > costly(t) * t.a),
    Line("Twice", tracks, lambda t: (costly(t) > 0) & (costly(t) + log(abs(costly(t))) > 1)),
    Line(
        "Counted",
        tracks,
        lambda t: (t.hits > 1000) & (count_of(vertices, lambda v: v.z * costly(t, 1) > t.x * t.a) > 2),
    ),
    Line(
        "CountedInside",
        muons,
        lambda t: (
            (t.hits > 38) & any_of(tracks, lambda s: count_of(vertices, lambda v: v.z > s.x) * costly(t, 2) > s.a)
        ),
    ),
)
"""Most operations are skipped for most candidates; undecided NaN comparisons in counts are counted for all of them."""


@pytest.mark.parametrize("special", [0.0, 0.1, 0.6])
def test_skipped_operations_of_refused_candidates_change_no_decision(special: float) -> None:
    case = case_of(COSTLY, 40, seed=7, special=special)
    decided = assert_all_decide_alike(case, ALL if special == 0.1 else ALL[:2])
    fired = [sum(mask >> i & 1 for mask in decided.masks) for i in range(len(COSTLY))]
    never = {"Never", "Counted"}
    assert [line.name for line, n in zip(COSTLY, fired, strict=True) if (n == 0) != (line.name in never)] == []
    assert (sum(decided.unknown) > 0) == (special > 0)


def test_memory_behind_the_last_candidate_is_no_candidate() -> None:
    """An extra candidate would be selected or undecided; the candidates do not fill the lanes of the CPU."""
    lines = (
        Line("Low", tracks, lambda t: t.x < 1 * mm),
        Line("High", tracks, lambda t: t.x > 1 * mm),
        Line("Number", event, lambda _: count_of(tracks, lambda t: t.x < 1 * mm) > 0),
        Line("Any", event, lambda _: any_of(tracks, lambda t: t.hits == 7)),
    )
    n_tracks = np.arange(toy.MAX_TRACKS + 1)
    case = case_of(lines, len(n_tracks))
    is_behind = np.arange(toy.MAX_TRACKS) >= n_tracks[:, None]
    x, behind = np.array([[2.0], [0.0]] * len(n_tracks))[: len(n_tracks)], np.array([[-1.0], [np.nan]] * len(n_tracks))
    columns = {
        **case.columns,
        "toy_tracks.count": n_tracks,
        "toy_tracks.x": np.where(is_behind, behind[: len(n_tracks)], x).ravel(),
        "toy_tracks.hits": np.where(is_behind, 7, 8).ravel(),
    }
    case = Case(case.lines, case.event_words, columns, case.limits)
    decided = assert_all_decide_alike(case, [partial(by_compiler, target=target) for target in targets()])
    assert decided.masks == [0 if n == 0 else 5 if n % 2 else 2 for n in n_tracks]
    assert sum(decided.unknown) == 0


@pytest.mark.parametrize("lines", [LINES, NESTED, COSTLY])
def test_every_instruction_set_decides_alike(lines: tuple[Line, ...]) -> None:
    case = case_of(lines, 60, seed=11)
    assert_all_decide_alike(case, [partial(by_compiler, target=target) for target in targets()])


def plain_log(x: float) -> float:
    if math.isnan(x) or x < 0:
        return math.nan
    return math.log(x) if x > 0 else -math.inf


PLAIN: dict[str, Callable[[dict[str, Any]], bool]] = {
    "Cut": lambda t: t["x"] > 0.5 and t["pt"] < 2000,
    "Log": lambda t: plain_log(t["pt"]) > 2.5,
    "Hits": lambda t: t["hits"] >= 38 and t["hits"] != 39,
    "Muons": lambda t: t["muon"] == 1 and t["pt"] > 5000,
    "Vertex": lambda t: t["z"] is not None and t["z"] > 100 and t["pt"] > 100,
    "NoVertex": lambda t: t["z"] is None and t["pt"] > 2000,
    "Near": lambda t: any(abs(np.float32(z) - np.float32(t["x"])) < np.float32(0.01) for z in t["all_z"]),
    "Closer": lambda t: sum(z < t["x"] for z in t["all_z"]) == 8,
}


def plain_tracks(columns: dict[str, NDArray[Any]], number: int) -> list[dict[str, Any]]:
    """The tracks of an event, as plain numbers."""
    n_vertices = int(columns["toy_vertices.count"][number])
    z = columns["toy_vertices.z"][number * toy.MAX_VERTICES :][:n_vertices].tolist()
    found = []
    for i in range(int(columns["toy_tracks.count"][number])):
        at = number * toy.MAX_TRACKS + i
        vertex = int(columns["toy_tracks.vertex"][at])
        found.append(
            {
                **{name: columns[f"toy_tracks.{name}"][at].item() for name in ("x", "pt", "hits", "muon")},
                "z": z[vertex] if vertex < n_vertices else None,
                "all_z": z,
            }
        )
    return found


def test_all_ways_decide_alike() -> None:
    case = case_of(LINES)
    decided = assert_all_decide_alike(case, ALL)
    assert sum(decided.unknown) > 100
    fired = [sum(mask >> i & 1 for mask in decided.masks) for i in range(len(LINES))]
    silent = [
        line.name for line, n in zip(LINES, fired, strict=True) if n in (0, 30) and line.name not in ("Every", "None")
    ]
    assert silent == []


def test_a_batch_without_events_has_no_decisions() -> None:
    """A node warms up with an empty batch."""
    decided = assert_all_decide_alike(case_of(LINES, 0), ALL)
    assert (decided.masks, decided.accepted, decided.unknown) == ([], [], [])


@pytest.mark.filterwarnings("ignore:invalid value")
def test_lines_decide_as_plain_python_says() -> None:
    case = case_of(LINES, 60, seed=3)
    masks = by_numpy(case).masks
    for i, line in enumerate(LINES):
        if line.name in PLAIN:
            expected = [
                any(PLAIN[line.name](track) for track in plain_tracks(dict(case.columns), event)) for event in range(60)
            ]
            assert [bool(mask >> i & 1) for mask in masks] == expected, line.name
            assert 0 < sum(expected) < 60, line.name


def test_a_nan_makes_a_selection_false_and_is_counted() -> None:
    lines = (
        Line("Above", tracks, lambda t: t.pt > 1 * GeV),
        Line("NotBelow", tracks, lambda t: ~(t.pt < 1 * GeV)),
        Line("Unequal", tracks, lambda t: t.pt != 1 * GeV),
        Line("Decided", tracks, lambda t: (t.pt > 1 * GeV) & (t.hits > 100)),
        Line("Chosen", tracks, lambda t: where(t.pt > 1 * GeV, 1.0, 2.0) > 0),
        Line("Either", tracks, lambda t: (t.pt > 1 * GeV) | (t.hits < 100)),
    )
    case = case_of(lines, 4)
    columns = {**case.columns, "toy_tracks.pt": np.full(160, np.nan, np.float32), "toy_tracks.count": np.array([3] * 4)}
    decided = assert_all_decide_alike(Case(case.lines, case.event_words, columns, case.limits), ALL)
    assert decided.masks == [1 << 5] * 4
    assert decided.unknown == [4 * 3] * 4


def test_a_missing_vertex_selects_nothing_and_is_unknown_unless_a_line_tests_for_it() -> None:
    lines = (
        Line("Asked", tracks, lambda t: t.has_vertex & (t.vertex.z > 0)),
        Line("NotAsked", tracks, lambda t: t.vertex.z > 0),
    )
    case = case_of(lines, 2)
    columns = {**case.columns, "toy_tracks.vertex": np.full(80, 255), "toy_tracks.count": np.array([5, 0])}
    decided = assert_all_decide_alike(Case(case.lines, case.event_words, columns, case.limits), ALL)
    assert (decided.masks, decided.unknown) == ([0, 0], [5, 0])


@pytest.mark.parametrize("n_lines", [1, 31, 32, 33, 64, 65, 100])
def test_menus_of_any_length_have_as_many_words_as_they_need(n_lines: int) -> None:
    inputs = (tracks, event, vertices)
    conditions: tuple[Callable[[int], Callable[[Any], Any]], ...] = (
        lambda i: lambda t: t.pt > 50.0 * i * GeV,
        lambda i: lambda e: e.n > i % 40,
        lambda i: lambda v: v.z > (i - 30.0) * mm,
    )
    lines = [Line(f"Line{i}", inputs[i % 3], conditions[i % 3](i), postscale=(1, 0.7)[i % 2]) for i in range(n_lines)]
    decided = assert_all_decide_alike(case_of(lines, 10), ALL)
    assert decided.accepted == [int(mask != 0) for mask in decided.masks]


@pytest.mark.parametrize(("block_size", "backward"), [(32, True), (128, False)])
def test_ptx_decides_alike_with_every_block_size(block_size: int, backward: bool) -> None:
    assert_all_decide_alike(case_of(LINES, 8, seed=5), [by_ptx(block_size, backward=backward)])
