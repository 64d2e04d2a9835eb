"""Which cuts are tuned, and in which ranges."""

from __future__ import annotations

from typing import Any

import pytest

from hltnode.processing.lhcb.lines import Line, long_tracks
from hltnode.processing.lhcb.lines.menu import HLT1_MENU
from hltnode.processing.selection.configuration.trigger_config import TriggerConfig
from hltnode.processing.selection.errors import TriggerConfigError
from hltnode.processing.selection.tuning.cuts import TunedCut, chosen_cuts
from hltnode.processing.selection.tuning.errors import TuningError

TRIGGER = TriggerConfig.from_toml(
    """
    [[lines]]
    type = "TrackMVA"
    name = "Hlt1Track"
    [[lines]]
    type = "DiMuonNoIP"
    name = "Hlt1Pair"
    min_pt = 0.0
    [[lines]]
    type = "TwoTrackMVA"
    name = "Hlt1Two"
    [[lines]]
    type = "VeloMicroBias"
    name = "Hlt1Micro"
    min_tracks = 3
    """,
    HLT1_MENU,
    "forward",
)


def with_a_parameter(t: Any, low: float = 0.5) -> Any:
    return t.chi2 > low


def names(*texts: str, keep: tuple[str, ...] = ()) -> list[str]:
    return [cut.name for cut in chosen_cuts(TRIGGER, texts, keep)]


def one(text: str) -> TunedCut:
    (found,) = chosen_cuts(TRIGGER, [text], [])
    return found


def test_all_numbers_but_zeros_flags_and_scales_are_tuned_if_nothing_is_named() -> None:
    found = names()
    assert {"Hlt1Track.alpha", "Hlt1Pair.min_p", "Hlt1Two.min_response", "Hlt1Micro.min_tracks"} <= set(found)
    assert not {"Hlt1Pair.min_pt", "Hlt1Pair.same_sign", "Hlt1Track.prescale", "Hlt1Track.postscale"} & set(found)


def test_patterns_name_lines_or_cuts_and_kept_lines_are_left_out() -> None:
    assert {name.partition(".")[0] for name in names("Hlt1T*")} == {"Hlt1Track", "Hlt1Two"}
    assert names("*.max_doca") == ["Hlt1Pair.max_doca", "Hlt1Two.max_doca"]
    assert names("*.max_doca", keep=("*Pair",)) == ["Hlt1Two.max_doca"]


def test_the_usual_range_is_half_to_twice_the_value_as_far_as_the_line_allows_it() -> None:
    alpha, response, count = one("Hlt1Track.alpha"), one("Hlt1Two.min_response"), one("Hlt1Micro.min_tracks")
    assert (alpha.low, alpha.base, alpha.high) == (148.0, 296.0, 592.0)
    assert response.high <= 1.0
    assert response.high > 0.999
    assert (count.low, count.high, count.is_count) == (2.0, 6.0, True)


def test_a_given_range_replaces_the_usual_one() -> None:
    by_name = {cut.name: cut for cut in chosen_cuts(TRIGGER, ["Hlt1Track", "Hlt1Track.alpha=-500:1500"], [])}
    assert (by_name["Hlt1Track.alpha"].low, by_name["Hlt1Track.alpha"].high) == (-500.0, 1500.0)
    assert len(by_name) > 5
    assert one("Hlt1Pair.min_pt=0:2000").low == 0.0


def test_levels_are_equidistant_within_the_range_and_contain_the_value_of_the_configuration() -> None:
    cut = TunedCut("A", "b", 1.3, 0.0, 4.0, is_count=False)
    assert cut.levels(5) == (0.0, 1.0, 1.3, 2.0, 3.0, 4.0)
    assert cut.levels(3, 3.0, 5.0) == (3.0, 3.5, 4.0)
    assert TunedCut("A", "b", 3.0, 2.0, 6.0, is_count=True).levels(25) == (2.0, 3.0, 4.0, 5.0, 6.0)
    assert TunedCut("A", "b", 1 / 3, 0.0, 1.0, is_count=False).levels(4) == (0.0, 0.3333, 1 / 3, 0.6667, 1.0)


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("Hlt1Trick", "no line matches; the nearest are Hlt1Track"),
        ("Hlt1Track.alfa", "no cut matches; the nearest are Hlt1Track.alpha"),
        ("Hlt1Track.alfa=0:1", "no cut matches"),
        ("Hlt1Track.alpha=0", "LINE.CUT=LOW:HIGH is expected"),
        ("Hlt1Track.alpha=0:inf", "two finite numbers"),
        ("Hlt1Track.alpha=500:0", "the lower one first"),
        ("Hlt1Track.alpha=0:100", "must contain the value of the configuration, 296"),
        ("Hlt1Track.prescale=0:1", "prescale is a scale, not a cut"),
        ("Hlt1Pair.min_pt", "its value is 0, so it has no usual range"),
        ("Hlt1Mine.low", "Hlt1Mine is a line of a Python file"),
    ],
)
def test_a_text_that_names_no_cut_or_no_range_is_refused_with_the_reason(text: str, message: str) -> None:
    mine = Line("Hlt1Mine", long_tracks, with_a_parameter)
    trigger = TriggerConfig(lines=(*TRIGGER.lines, mine), types=TRIGGER.types)
    with pytest.raises(TuningError, match=f"--tune {text}: .*{message}"):
        chosen_cuts(trigger, [text], [])


def test_kept_lines_and_values_that_a_line_forbids_are_refused_by_name() -> None:
    with pytest.raises(TuningError, match="--keep Hlt1X: no line matches"):
        chosen_cuts(TRIGGER, [], ["Hlt1X"])
    with pytest.raises(TuningError, match=r"--tune Hlt1Track\.alpha=0:500: --keep keeps Hlt1Track"):
        chosen_cuts(TRIGGER, ["Hlt1Track.alpha=0:500"], ["Hlt1Track"])
    with pytest.raises(TuningError, match="no line has a cut that can be tuned"):
        chosen_cuts(TriggerConfig(lines=(Line("Hlt1Mine", long_tracks, lambda t: t.chi2 > 1),)), [], [])
    with pytest.raises(TriggerConfigError, match=r"Hlt1Two\.min_response: Input should be less than or equal to 1"):
        chosen_cuts(TRIGGER, ["Hlt1Two.min_response=0:2"], [])
