"""Scans over a cut of a line: syntax and effect."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

from hltnode.processing.lhcb.lines import GeV, Line, long_tracks
from hltnode.processing.lhcb.lines.menu import HLT1_MENU
from hltnode.processing.selection.configuration.trigger_config import TriggerConfig
from hltnode.processing.selection.errors import TriggerConfigError
from hltnode.processing.selection.studies.scans import Scan, ScanError

TRIGGER = TriggerConfig.default(HLT1_MENU, "forward_then_matching")


def test_a_scan_has_a_line_of_each_value_whose_other_cuts_and_scalers_are_unchanged() -> None:
    scan = Scan.read("Hlt1TrackMVA.alpha=0:500:3", TRIGGER)
    assert scan.values == (0.0, 250.0, 500.0)
    line = TRIGGER.lines[scan.place]
    assert {one.name for one in scan.lines} == {line.name} == {"Hlt1TrackMVA"}
    assert all(one.record() == line.record() for one in scan.lines)
    changed = TriggerConfig.from_toml("[menu.Hlt1TrackMVA]\nalpha = 250.0\n", HLT1_MENU, "forward")
    assert scan.lines[1] in changed.lines
    assert scan.lines[0] not in changed.lines


@pytest.mark.parametrize(
    ("text", "values"),
    [
        ("Hlt1TrackMVA.alpha=296", (296.0,)),
        ("Hlt1TrackMVA.alpha=-160,296,1e3", (-160.0, 296.0, 1000.0)),
        ("Hlt1TrackMVA.prescale=0.1:1:2", (0.1, 1.0)),
        ("Hlt1BeamGas.min_hits=8:12:3", (8.0, 10.0, 12.0)),
    ],
)
def test_values_are_a_range_or_a_list_of_cuts_counts_or_scales(text: str, values: tuple[float, ...]) -> None:
    scan = Scan.read(text, TRIGGER)
    assert scan.values == values
    assert len(set(scan.lines)) == len(values)


@pytest.mark.parametrize(
    "text",
    [
        "",
        "Hlt1TrackMVA",
        "Hlt1TrackMVA.alpha",
        "Hlt1TrackMVA=1",
        ".alpha=1",
        "Hlt1TrackMVA.alpha=",
        "Hlt1TrackMVA.alpha=1:2",
        "Hlt1TrackMVA.alpha=1:2:3:4",
        "Hlt1TrackMVA.alpha=1:2:1.5",
        "Hlt1TrackMVA.alpha=1:2:0",
        "Hlt1TrackMVA.alpha=1:2:1001",
        "Hlt1TrackMVA.alpha=1,,2",
        "Hlt1TrackMVA.alpha=nan",
        "Hlt1TrackMVA.alpha=0:inf:3",
    ],
)
def test_a_scan_with_wrong_syntax_is_refused_with_its_text(text: str) -> None:
    with pytest.raises(ScanError, match=f"--scan {text}: "):
        Scan.read(text, TRIGGER)


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("Hlt1TrackMWA.alpha=1,2", "Hlt1TrackMWA: no line has this name; the nearest are Hlt1TrackMVA"),
        ("Hlt1TrackMVA.alfa=1,2", r"Hlt1TrackMVA.alfa: the line has no such cut; the nearest are alpha"),
        ("Hlt1TrackMVA.name=1,2", r"Hlt1TrackMVA.name: the line has no such cut"),
        ("Hlt1TrackMVA.prescale=2", "Hlt1TrackMVA.prescale: Input should be less than or equal to 1"),
        ("Hlt1BeamGas.min_hits=8.5", "Hlt1BeamGas.min_hits: Input should be a valid integer"),
        ("Hlt1DiMuonNoIP.same_sign=1", "Hlt1DiMuonNoIP.same_sign: Input should be a valid boolean"),
    ],
)
def test_a_line_cut_or_value_that_is_not_possible_is_refused_by_name(text: str, message: str) -> None:
    with pytest.raises(TriggerConfigError, match=message):
        Scan.read(text, TRIGGER)


def selects(track: Any, min_pt: Any = 1.5 * GeV, min_hits: int = 8, label: str = "") -> Any:
    return (track.pt > min_pt) & (track.velo.n_hits >= min_hits)


MINE = TriggerConfig(lines=(Line("Hlt1Mine", long_tracks, selects, prescale=0.5), *TRIGGER.lines[:2]))


def test_arguments_with_numbers_as_default_are_parameters_of_a_python_line() -> None:
    scan = Scan.read("Hlt1Mine.min_pt=500:2500:3", MINE)
    assert (scan.unit, scan.place) == ("MeV", 0)
    other = Line("Hlt1Mine", long_tracks, lambda t: selects(t, min_pt=2.5 * GeV), prescale=0.5)
    assert scan.lines[2].content() == other.content()
    assert scan.lines[0].content() != other.content()
    hits = Scan.read("Hlt1Mine.min_hits=8,9", MINE)
    assert hits.unit == ""
    assert hits.lines[0].content() == MINE.lines[0].content() != hits.lines[1].content()
    scaled = Scan.read("Hlt1Mine.prescale=0.25", MINE)
    assert [line.prescale for line in scaled.lines] == [0.25]


@pytest.mark.parametrize(
    ("text", "message"),
    [
        (
            "Hlt1Mine.label=1",
            r"Hlt1Mine.label: the line has no such parameter; there are min_pt \[MeV\], min_hits, prescale, postscale",
        ),
        ("Hlt1Mine.min_hits=8.5", "Hlt1Mine.min_hits: a whole number is expected, not 8.5"),
        ("Hlt1Mine.prescale=2", "prescale: a number from 0 to 1 is expected"),
        ("Hlt1TrackMVA.alpha=1", "Hlt1TrackMVA.alpha: the line has no such parameter; there are prescale, postscale"),
    ],
)
def test_a_parameter_that_a_python_line_lacks_is_refused_with_the_known_ones(text: str, message: str) -> None:
    with pytest.raises(TriggerConfigError, match=message):
        Scan.read(text, TriggerConfig(lines=(*MINE.lines[:1], *TRIGGER.lines)))


def test_cuts_of_the_menu_have_their_units() -> None:
    assert Scan.read("Hlt1TrackMVA.prescale=1", TRIGGER).unit == ""
    assert TRIGGER.unit_of("Hlt1TrackMVA", "min_pt") == "MeV"


def test_other_values_change_only_decisions_of_the_line_and_totals_of_all_lines() -> None:
    trigger = TriggerConfig(lines=TRIGGER.lines[:3], types=TRIGGER.types[:3])
    scan = Scan.read(f"{trigger.line_names[1]}.prescale=0,1", trigger)
    fired = np.array([[0, 1, 0], [1, 1, 0], [0, 0, 0]], bool)
    found = scan.replaced(fired, np.array([[0, 1], [0, 1], [0, 1]], bool))
    assert found.line.tolist() == [[False, True]] * 3
    assert found.total.tolist() == [[False, True], [True, True], [False, True]]
    assert found.exclusive.tolist() == [[False, True], [False, False], [False, True]]
