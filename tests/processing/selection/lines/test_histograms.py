"""Histograms: refused arguments, content, and equal counts with every evaluator."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from hltnode.processing.framework.histograms import HistogramContent, contents, n_counts
from hltnode.processing.selection.errors import HistogramError, LineError
from hltnode.processing.selection.expressions.functions import log
from hltnode.processing.selection.expressions.units import GeV, MeV, m, mm
from hltnode.processing.selection.lines.histogram import MAX_BINS, Histogram, RecordedHistogram, check_histograms
from hltnode.processing.selection.lines.inputs import count_of
from hltnode.processing.selection.lines.line import Line
from tests.processing.selection import toy_detector as toy
from tests.processing.selection.line_evaluators import (
    Case,
    assert_all_decide_alike,
    by_blocks,
    by_compiler,
    by_numpy,
    by_ptx,
)
from tests.processing.selection.toy_detector import event, muons, tracks, vertices

HERE = Path(__file__).name


def pt(t: Any) -> Any:
    return t.pt


@pytest.mark.parametrize(
    ("declare", "message"),
    [
        (lambda: Histogram("H", pt, 50, 500 * MeV, 400 * MeV, of=tracks), "range: its end, 400, is not above"),
        (lambda: Histogram("H", pt, 50, 400 * MeV, 400 * MeV, of=tracks), "range: its end, 400, is not above"),
        (lambda: Histogram("H", pt, 50, 0, 1 * m, of=tracks), "range: in mm, the quantity has MeV"),
        (lambda: Histogram("H", pt, 50, 0, 1000, of=tracks), "range: in no unit, the quantity has MeV"),
        (lambda: Histogram("H", pt, 50, 1 * m, 1 * GeV, of=tracks), "range: from mm to MeV"),
        (lambda: Histogram("H", pt, 50, 0, float("nan"), of=tracks), "range: its end, nan, is not above"),
        (lambda: Histogram("H", pt, 50, 0, 1e39 * MeV, of=tracks), "range: single precision cannot hold it"),
        (lambda: Histogram("H", pt, 50, 1 * MeV, (1 + 1e-9) * MeV, of=tracks), "single precision cannot hold it"),
        (lambda: Histogram("H", pt, 0, 0, 1 * GeV, of=tracks), f"bins: an integer from 1 to {MAX_BINS} is expected"),
        (lambda: Histogram("H", pt, MAX_BINS + 1, 0, 1 * GeV, of=tracks), f"bins: an integer from 1 to {MAX_BINS}"),
        (lambda: Histogram("H", pt, 2.5, 0, 1 * GeV, of=tracks), "bins: an integer"),  # type: ignore[arg-type]
        (lambda: Histogram("H", lambda t: t.ptt, 5, 0, 1 * GeV, of=tracks), "field 'ptt': tracks have no such"),
        (lambda: Histogram("H", lambda t: t.is_muon, 5, 0, 1, of=tracks), "quantity: a number is expected, not true"),
        (lambda: Histogram("H", lambda t: log(t.pt), 5, 0, 1, of=tracks), "log of a value in MeV"),
        (lambda: Histogram("H", pt, 5, 0, 1 * GeV, of=tracks, where=lambda t: t.a), "where takes a condition"),
        (lambda: Histogram("H", pt, 5, 0, 1 * GeV, of=tracks, prescale=0.0), "prescale: a number above 0"),
        (lambda: Histogram("H", pt, 5, "low", 1 * GeV, of=tracks), "low: a number such as 500"),  # type: ignore[arg-type]
        (lambda: Histogram("H", pt, 5, 0, 1 * GeV).recorded(), "of: candidates are expected"),
        (lambda: Histogram("H", pt, 5, 0, 1 * GeV, of="tracks"), "of: candidates are expected"),  # type: ignore[arg-type]
        (lambda: Histogram("1H", pt, 5, 0, 1 * GeV, of=tracks), "a name of at most"),
    ],
)  # fmt: skip
def test_a_wrong_declaration_is_refused_with_name_and_place(declare: Callable[[], Any], message: str) -> None:
    with pytest.raises(HistogramError) as refused:
        declare()
    assert message in str(refused.value)
    assert str(refused.value).startswith("histogram ")
    assert f"({HERE}:" in str(refused.value)


def test_a_wrong_histogram_of_a_line_names_line_histogram_and_place() -> None:
    with pytest.raises(HistogramError, match=rf"line L: histogram mass: range: in mm, .* MeV \({HERE}:\d+\)"):
        Line("L", tracks, lambda t: t.pt > 0, histograms=[Histogram("mass", pt, 10, 0, 1 * mm)])
    with pytest.raises(
        HistogramError, match="line L: histogram mass: of: a histogram of a line holds the candidates of the"
    ):
        Line("L", tracks, lambda t: t.pt > 0, histograms=[Histogram("mass", pt, 10, 0, 1 * GeV, of=tracks)])
    with pytest.raises(LineError, match="line L: histograms: a list of histograms is expected, it contains 3"):
        Line("L", tracks, lambda t: t.pt > 0, histograms=[3])  # type: ignore[list-item]


def some(n: int, bins: int) -> list[RecordedHistogram]:
    return [Histogram(f"H{i}", pt, bins, 0, 1 * GeV, of=tracks).recorded() for i in range(n)]


def test_names_number_and_bins_are_bounded() -> None:
    check_histograms(some(32, 1000))
    with pytest.raises(HistogramError, match="histogram H0: two histograms have this name"):
        check_histograms(some(1, 5) * 2)
    with pytest.raises(HistogramError, match="257 histograms, at most 256 are allowed"):
        check_histograms(some(257, 5))
    with pytest.raises(HistogramError, match="histograms: 33099 bins in total, at most 32768 are allowed"):
        check_histograms(some(33, 1000))


OF_LINES = (
    Line("Cut", tracks, lambda t: (t.x > 0.5 * mm) & (t.pt < 2 * GeV),
         histograms=[Histogram("pt", pt, 20, -1 * GeV, 2 * GeV), Histogram("a", lambda t: t.a, 7, -0.1, 0.3)]),
    Line("Half", muons, lambda t: t.a > 0, postscale=0.5, histograms=[Histogram("hits", lambda t: t.hits, 40, 0, 40)]),
    Line("Number", event, lambda e: e.n > 20, histograms=[Histogram("n", lambda e: e.n, 5, 20, 40)]),
)  # fmt: skip
ALONE = (
    Histogram("x", lambda t: t.x, 33, -10 * mm, 10 * mm, of=tracks),
    Histogram("log", lambda t: log(abs(t.a)), 10, -5, 5, of=tracks, where=lambda t: t.b > 0),
    Histogram("vertex", lambda t: t.vertex.z, 10, -100 * mm, 100 * mm, of=tracks),
    Histogram("n", lambda e: count_of(tracks, lambda t: t.pt > 1 * GeV), 10, 0, 10, of=event),
    Histogram("near", lambda v: count_of(tracks, lambda t: t.x < v.z), 10, 0, 40, of=vertices),
    Histogram("sample", lambda t: t.hits, 40, 0, 40, of=tracks, prescale=0.3),
    Histogram("sample_of_events", lambda e: e.n, 41, 0, 41, of=event, prescale=0.3),
    Histogram("accepted", lambda t: t.pt, 10, 0, 2 * GeV, of=muons, accepted=True),
    Histogram("accepted_n", lambda e: e.n * count_of(vertices), 10, 0, 320, of=event, accepted=True),
    Histogram("both", lambda v: v.z, 10, -1 * mm, 1 * mm, of=vertices, accepted=True, prescale=0.3),
)


def case_of(lines: Sequence[Line], histograms: Sequence[Histogram], n_events: int = 40, seed: int = 3) -> Case:
    columns = toy.random_events(n_events, seed)
    recorded = (
        *(histogram.recorded() for histogram in histograms),
        *(histogram for line in lines for histogram in line.recorded_histograms),
    )
    shapes = [histogram.shape for histogram in recorded]
    limits = replace(toy.limits_of(columns, len(lines)), histogram_counts=n_counts(shapes))
    return Case(tuple(lines), toy.EVENT_WORDS, columns, limits, recorded)


def by_name(case: Case) -> dict[str, HistogramContent]:
    shapes = [histogram.shape for histogram in case.histograms]
    counts = np.array(by_numpy(case).counts, np.uint32)
    return {content.shape.name: content for content in contents(shapes, counts)}


@pytest.mark.timeout(300)
def test_every_way_to_fill_histograms_counts_alike() -> None:
    case = case_of(OF_LINES, ALONE)
    decided = assert_all_decide_alike(case, (by_compiler, by_blocks(1), by_blocks(100, backward=True), by_ptx()))
    assert all(content.counts.any() for content in by_name(case).values())
    without = assert_all_decide_alike(case_of(OF_LINES, ()), ())
    assert (decided.masks, decided.unknown) == (without.masks, without.unknown)


def plain_counts(values: list[float], low: float, high: float, bins: int) -> list[int]:
    """Content of a histogram of some numbers, NaN last."""
    counts = [0] * (bins + 3)
    for value in values:
        if np.isnan(value):
            counts[-1] += 1
        elif value < low:
            counts[0] += 1
        elif value >= high:
            counts[-2] += 1
        else:
            counts[1 + int((value - low) / (high - low) * bins)] += 1
    return counts


def test_a_histogram_holds_what_plain_python_counts() -> None:
    case = case_of(OF_LINES, ALONE)
    held, columns = by_name(case), case.columns
    tracks_of = [
        (e, e * toy.MAX_TRACKS + i) for e in range(case.limits.events) for i in range(columns["toy_tracks.count"][e])
    ]
    x = [float(columns["toy_tracks.x"][i]) for _, i in tracks_of]
    assert held["x"].counts.tolist() == plain_counts(x, -10.0, 10.0, 33)
    assert held["x"].not_a_number > 0
    selected = [
        columns["toy_tracks.hits"][i]
        for _, i in tracks_of
        if columns["toy_tracks.muon"][i] and columns["toy_tracks.y"][2 * i] > 0
    ]
    counts = held["Half_hits"].counts.tolist()
    assert counts[:-1] == plain_counts(selected, 0, 40, 40)[:-1], "the scales of the line must not matter"
    n = [float(number) for number in columns["toy_tracks.count"] if number > 20]
    assert held["Number_n"].counts.tolist() == plain_counts(n, 20, 40, 5)
    accepted = np.array(by_numpy(case).accepted, np.bool_)
    assert held["accepted_n"].entries == accepted.sum()


def test_histograms_with_the_same_prescale_use_the_same_events() -> None:
    columns = case_of(OF_LINES, ALONE).columns
    held = by_name(case_of(OF_LINES, ALONE))
    events, of_tracks = held["sample_of_events"], held["sample"]
    assert 0 < events.entries < len(columns["toy_tracks.count"]) / 2
    assert of_tracks.entries == (events.bins * np.arange(41, dtype=np.uint64)).sum()


def test_a_value_at_an_edge_is_in_the_range_or_beyond_it_as_single_precision_says() -> None:
    histogram = Histogram("H", lambda t: t.a, 3, -1, 2, of=tracks)
    columns = toy.random_events(1, 1)
    values = [-1.0, np.nextafter(np.float32(-1), np.float32(-2)), 2.0, np.nextafter(np.float32(2), np.float32(0)), 0.0]
    columns["toy_tracks.count"] = np.array([len(values)])
    columns["toy_tracks.y"][: 2 * len(values) : 2] = values
    case = case_of(OF_LINES, [histogram], 1)
    held = by_name(replace(case, columns=columns))["H"]
    assert held.counts.tolist() == [1, 1, 1, 1, 1, 0]


def test_histograms_change_no_key() -> None:
    with_histogram, without = OF_LINES[0], Line("Cut", tracks, lambda t: (t.x > 0.5 * mm) & (t.pt < 2 * GeV))
    assert with_histogram.content() == without.content()
    assert with_histogram == without
