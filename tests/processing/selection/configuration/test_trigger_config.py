"""The trigger configuration: valid files, error messages, and its key."""

from __future__ import annotations

import operator
import pickle
from dataclasses import FrozenInstanceError
from pathlib import Path

import pytest

from hltnode.processing.lhcb.chain import CHAIN, HLT1_SEQUENCE
from hltnode.processing.lhcb.lines.line_types.event_lines import Passthrough
from hltnode.processing.lhcb.lines.line_types.velo import VeloMicroBias
from hltnode.processing.selection.configuration.overrides import Override
from hltnode.processing.selection.configuration.trigger_config import TriggerConfig
from hltnode.processing.selection.errors import TriggerConfigError
from hltnode.protocol.raw_data.reports import MAX_LINES

EXAMPLE = """
[sequence.pv_beamline_multi_fit]
max_chi2 = 9
min_tracks = 5

[[lines]]
type = "VeloMicroBias"
name = "Hlt1VeloMicroBias"
min_tracks = 2
postscale = 0.001

[[lines]]
type = "Passthrough"
name = "Hlt1Passthrough"
"""


def test_a_file_gives_lines_and_constants() -> None:
    trigger = TriggerConfig.from_toml(EXAMPLE, CHAIN.menu)
    assert trigger.lines == (
        VeloMicroBias("Hlt1VeloMicroBias", min_tracks=2, postscale=0.001).line(),
        Passthrough("Hlt1Passthrough").line(),
    )
    assert trigger.line_names == ("Hlt1VeloMicroBias", "Hlt1Passthrough")
    assert trigger.overrides == (
        Override("pv_beamline_multi_fit", "max_chi2", 9),
        Override("pv_beamline_multi_fit", "min_tracks", 5),
    )


def test_overridden_constants_reach_the_sequence_with_their_type() -> None:
    configured = TriggerConfig.from_toml(EXAMPLE, CHAIN.menu).configure(HLT1_SEQUENCE)
    before = {algorithm.name: algorithm for algorithm in HLT1_SEQUENCE}
    for algorithm in configured:
        constants = {constant.name: constant.value for constant in algorithm.constants}
        if algorithm.name == "pv_beamline_multi_fit":
            assert constants["max_chi2"] == 9.0
            assert isinstance(constants["max_chi2"], float)
            assert constants["min_tracks"] == 5
            assert [constant.name for constant in algorithm.constants] == [
                constant.name for constant in before[algorithm.name].constants
            ]
        else:
            assert algorithm == before[algorithm.name]


def test_a_file_may_name_the_sequence_beside_its_constants() -> None:
    trigger = TriggerConfig.from_toml('[sequence]\nname = "velo"\n[sequence.x]\ny = 1', CHAIN.menu)
    assert trigger.sequence == "velo"
    assert trigger.overrides == (Override("x", "y", 1),)
    assert TriggerConfig.from_toml("[sequence.x]\ny = 1", CHAIN.menu).sequence is None


def test_a_file_without_lines_keeps_the_default_lines() -> None:
    assert TriggerConfig.from_toml("", CHAIN.menu).lines == CHAIN.load_trigger(None).lines


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("lines = 3", r"^lines: an array"),
        ("lines = [3]", r"^lines\[0\]: a table"),
        ("linez = 3", r"^linez: unknown key"),
        ("sequence = 3", r"^sequence: a table"),
        ("[sequence]\nx = 3", r"^sequence\.x: a table"),
        ("[sequence]\nname = 3", r"^sequence\.name: the name of a sequence"),
        ("[sequence.x]\ny = 'z'", r"^sequence\.x\.y: a finite number"),
        ("[sequence.x]\ny = true", r"^sequence\.x\.y: a finite number"),
        ("[sequence.x]\ny = nan", r"^sequence\.x\.y: a finite number"),
        ("[sequence.x]\ny = 1" + "0" * 400, r"^sequence\.x\.y: a finite number"),
        ("[[lines]]\nname = 'A'", r"^lines\[0\]\.type: None is not one of"),
        ("[[lines]]\ntype = []\nname = 'A'", r"^lines\[0\]\.type: \[\] is not one of"),
        ("[[lines]]\ntype = 'Nothing'\nname = 'A'", r"^lines\[0\]\.type: 'Nothing' is not one of"),
        ("[[lines]]\ntype = 'Passthrough'", r"^lines\[0\]\.name: "),
        ("[[lines]]\ntype = 'Passthrough'\nname = 'A'\nprescale = 2", r"^lines\[0\]\.prescale: "),
        ("[[lines]]\ntype = 'Passthrough'\nname = 'A'\nprescale = '1'", r"^lines\[0\]\.prescale: "),
        ("[[lines]]\ntype = 'VeloMicroBias'\nname = 'A'\nmin_tracks = 1.5", r"^lines\[0\]\.min_tracks: "),
        ("[[lines]]\ntype = 'VeloMicroBias'\nname = 'A'\nmin_trackz = 1", r"^lines\[0\]\.min_trackz: "),
        ("[[lines]]\ntype = 'Passthrough'\nname = 'A'\n" * 2, r"^lines\[1\]\.name: lines\[0\] has the name"),
        ("[[lines]", r"^not a TOML file"),
        pytest.param("x = " + "[" * 3000, r"^not a TOML file", id="deep"),
    ],
)
def test_errors_name_the_key(text: str, message: str) -> None:
    with pytest.raises(TriggerConfigError, match=message):
        TriggerConfig.from_toml(text, CHAIN.menu)


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("[sequence.nothing]\nx = 1", r"^sequence\.nothing: unknown algorithm"),
        ("[sequence.pv_beamline_peaks]\nx = 1", r"^sequence\.pv_beamline_peaks\.x: unknown constant"),
        ("[sequence.pv_beamline_multi_fit]\nmin_tracks = 1.5", r"min_tracks: an integer"),
        ("[sequence.pv_beamline_multi_fit]\nmin_tracks = -1", r"min_tracks: an integer"),
    ],
)
def test_constants_that_do_not_fit_the_sequence_are_refused(text: str, message: str) -> None:
    with pytest.raises(TriggerConfigError, match=message):
        TriggerConfig.from_toml(text, CHAIN.menu).configure(HLT1_SEQUENCE)


@pytest.mark.parametrize(("constant", "first", "last"), [("seed_partners", 1, 10), ("plane_kind", 0, 2)])
def test_a_constant_with_few_values_takes_no_other(constant: str, first: int, last: int) -> None:
    sequence = CHAIN.sequences["velo_simd"].algorithms

    def configured(value: int) -> int | float:
        text = f"[sequence.velo_follow_tracks]\n{constant} = {value}"
        changed = TriggerConfig.from_toml(text, CHAIN.menu, "velo_simd").configure(sequence)
        values = {it.name: it.value for algorithm in changed for it in algorithm.constants}
        return values[constant]

    assert [configured(value) for value in (first, last)] == [first, last]
    for value in {first - 1, last + 1} - {-1}:
        with pytest.raises(TriggerConfigError, match=f"{constant}: a number from {first} to {last} is expected"):
            configured(value)


def test_errors_of_a_file_name_the_file(tmp_path: Path) -> None:
    path = tmp_path / "trigger.toml"
    with pytest.raises(TriggerConfigError, match=r"trigger\.toml: cannot be read"):
        TriggerConfig.load(path, CHAIN.menu)
    path.write_text("linez = 3")
    with pytest.raises(TriggerConfigError, match=r"trigger\.toml: linez: unknown key"):
        TriggerConfig.load(path, CHAIN.menu)
    path.write_bytes(b"\xff\xfe")
    with pytest.raises(TriggerConfigError, match=r"trigger\.toml: cannot be read"):
        TriggerConfig.load(path, CHAIN.menu)


def test_there_are_as_many_lines_as_a_decision_report_holds() -> None:
    lines = tuple(Passthrough(f"Line{i}").line() for i in range(MAX_LINES + 1))
    assert len(TriggerConfig(lines[:MAX_LINES]).line_names) == MAX_LINES
    with pytest.raises(TriggerConfigError, match=f"{MAX_LINES + 1} lines, at most {MAX_LINES} fit in the decision"):
        TriggerConfig(lines)


def test_a_menu_without_lines_is_refused() -> None:
    with pytest.raises(TriggerConfigError, match=r"^lines: at least one line"):
        TriggerConfig.from_toml("lines = []", CHAIN.menu)


def test_the_table_holds_the_lines_in_their_order() -> None:
    lines = tuple(VeloMicroBias(f"Line{i}", min_tracks=i + 1).line() for i in range(500))
    table = TriggerConfig(lines).line_table()
    assert len({record["prescale"]["seed"] for record in table}) == 500
    assert [record.tobytes() for record in table] == [line.record().tobytes() for line in lines]


def test_a_configuration_cannot_be_changed() -> None:
    trigger = CHAIN.load_trigger(None)
    with pytest.raises(FrozenInstanceError):
        trigger.lines = ()  # type: ignore[misc]
    with pytest.raises(FrozenInstanceError):
        trigger.lines[0].prescale = 0.5  # type: ignore[misc]


def test_the_key_is_that_of_the_content() -> None:
    reordered = EXAMPLE.replace("max_chi2 = 9\nmin_tracks = 5", "min_tracks = 5\nmax_chi2 = 9.0")
    key = TriggerConfig.from_toml(EXAMPLE, CHAIN.menu).tck(HLT1_SEQUENCE)
    assert TriggerConfig.from_toml(reordered, CHAIN.menu).tck(HLT1_SEQUENCE) == key
    assert 0 <= key < 2**32


@pytest.mark.parametrize(
    ("old", "new"),
    [
        ("min_tracks = 2", "min_tracks = 3"),
        ("0.001", "0.002"),
        ('"Hlt1Passthrough"', '"Hlt1Other"'),
        ("max_chi2 = 9", "max_chi2 = 9.5"),
        ("[sequence.pv_beamline_multi_fit]\nmax_chi2 = 9\nmin_tracks = 5", ""),
    ],
)
def test_every_change_changes_the_key(old: str, new: str) -> None:
    assert old in EXAMPLE
    changed = TriggerConfig.from_toml(EXAMPLE.replace(old, new), CHAIN.menu)
    assert changed.tck(HLT1_SEQUENCE) != TriggerConfig.from_toml(EXAMPLE, CHAIN.menu).tck(HLT1_SEQUENCE)


def test_the_order_of_lines_changes_the_key_because_it_changes_the_bits() -> None:
    lines = CHAIN.load_trigger(None).lines
    assert TriggerConfig(lines).tck(HLT1_SEQUENCE) != TriggerConfig(lines[::-1]).tck(HLT1_SEQUENCE)


def test_lines_of_the_menu_are_made_once_for_their_prefilters() -> None:
    first, second = (TriggerConfig.default(CHAIN.menu) for _ in range(2))
    assert all(map(operator.is_, first.lines, second.lines))
    known = CHAIN.menu.prefilters_by_name
    one, other = list(known)[:2]
    line_type = VeloMicroBias("Some", prefilters=(one,))
    line = line_type.prefiltered_line(known)
    assert line_type.prefiltered_line(known) is line
    exchanged = line_type.prefiltered_line({one: known[other]})
    assert (line.prefilters, exchanged.prefilters) == ((known[one],), (known[other],))
    # A copy and another process make their own lines.
    copy = pickle.loads(pickle.dumps(line_type))
    assert copy == line_type
    assert copy.prefiltered_line(known) is not line
