"""Scans over a cut of a line: syntax and effect."""

from __future__ import annotations

import numpy as np
import pytest

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


def test_a_line_without_cuts_to_set_is_refused() -> None:
    python_line = TriggerConfig(lines=TRIGGER.lines)
    with pytest.raises(TriggerConfigError, match="Hlt1TrackMVA: the line has no cuts"):
        Scan.read("Hlt1TrackMVA.alpha=1", python_line)


def test_other_values_change_only_decisions_of_the_line_and_totals_of_all_lines() -> None:
    trigger = TriggerConfig(lines=TRIGGER.lines[:3], types=TRIGGER.types[:3])
    scan = Scan.read(f"{trigger.line_names[1]}.prescale=0,1", trigger)
    fired = np.array([[0, 1, 0], [1, 1, 0], [0, 0, 0]], bool)
    found = scan.replaced(fired, np.array([[0, 1], [0, 1], [0, 1]], bool))
    assert found.line.tolist() == [[False, True]] * 3
    assert found.total.tolist() == [[False, True], [True, True], [False, True]]
    assert found.exclusive.tolist() == [[False, True], [False, False], [False, True]]
