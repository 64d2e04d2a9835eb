"""Line types: refused parameters, and the lines that they make."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import fields, replace
from typing import Any

import pytest
from pydantic import ValidationError

from hltnode.processing.lhcb import lines as lines_package
from hltnode.processing.lhcb.chain import CHAIN
from hltnode.processing.lhcb.lines.inputs import by_name as inputs_module
from hltnode.processing.lhcb.lines.line_types.event_lines import OdinEventType, Passthrough
from hltnode.processing.lhcb.lines.line_types.tracks import TrackMVA
from hltnode.processing.lhcb.lines.line_types.velo import NDisplacedVeloTracks, VeloMicroBias
from hltnode.processing.lhcb.lines.menu import HLT1_MENU
from hltnode.processing.selection.lines.inputs import Input
from hltnode.processing.selection.lines.line_type import LineType


@pytest.mark.parametrize(
    "make",
    [
        lambda: Passthrough(""),
        lambda: Passthrough("has blank"),
        lambda: Passthrough("A", prescale=-0.1),
        lambda: Passthrough("A", postscale=1.1),
        lambda: Passthrough("A", prescale=float("nan")),
        lambda: VeloMicroBias("A", min_tracks=0),
        lambda: NDisplacedVeloTracks("A", min_ip=-1.0),
        lambda: NDisplacedVeloTracks("A", max_ip=float("inf")),
        lambda: OdinEventType("A", mask=0),
        lambda: OdinEventType("A", mask=1 << 16),
        lambda: TrackMVA("A", min_ip_chi2=0.0),
    ],
)
def test_values_out_of_range_are_refused(make: Callable[[], LineType]) -> None:
    with pytest.raises(ValidationError):
        make()


def test_a_line_has_the_name_and_the_scales_of_its_type_and_its_first_sentence() -> None:
    line = VeloMicroBias("A", min_tracks=3, prescale=0.5, postscale=0.25).line()
    assert (line.name, line.prescale, line.postscale) == ("A", 0.5, 0.25)
    assert line.description == "Events with at least `min_tracks` VELO tracks."


def test_every_cut_of_every_type_decides() -> None:
    """Selections read every cut of their line type."""
    without_effect = [
        f"{line_type.__name__}.{name}"
        for line_type in HLT1_MENU.types
        for name in {field.name for field in fields(line_type)} - {"name", "prescale", "postscale", "prefilters"}
        if _changed(line_type("A"), name).line() == line_type("A").line()
    ]
    assert without_effect == []


def _changed(line: LineType, name: str) -> LineType:
    """The line with another value of one cut."""
    value = getattr(line, name)
    other: Any = value / 2 if value else 0.1
    if isinstance(value, bool):
        other = not value
    elif isinstance(value, int):
        other = value - 1 if value > 1 else value + 1
    return replace(line, **{name: other})


@pytest.mark.parametrize("sequence", CHAIN.sequences)
def test_the_menu_runs_in_every_sequence_and_says_what_is_not_available(sequence: str) -> None:
    trigger = CHAIN.load_trigger(None, sequence)
    missing = CHAIN.not_available(trigger)
    assert not any("calorimeter" in reason for reason in missing.values())
    assert not set(missing) & set(trigger.line_names)
    if sequence != "hlt1_2026":
        assert missing["Hlt1Bs2GammaGamma"] == "reads photon_pairs, ecal_clusters"
        assert missing["Hlt1CaloDigitsMinADC"] == "reads events.ecal_max_adc"
    if sequence == "hlt1_2026":
        assert set(trigger.line_names) == {line.name for line in HLT1_MENU.of(sequence)}
        assert missing.keys() - HLT1_MENU.not_available.keys() == {"Hlt1VeloHalvesVertex"}
    elif sequence in ("velo", "velo_simd", "velo_sparse_ccl", "velo_halves"):
        assert missing["Hlt1TrackMVA"] == "reads long_tracks"
        assert set(missing) | set(trigger.line_names) >= {line.name for line in HLT1_MENU.lines}
    else:
        assert set(trigger.line_names) == {line.name for line in HLT1_MENU.lines}


def test_a_file_of_lines_gets_what_the_names_say() -> None:
    """A module of the package must not have the name of an input: importing it would replace the input."""
    inputs = {name for name in vars(inputs_module) if isinstance(getattr(inputs_module, name), Input)}
    offered = inputs & set(lines_package.__all__)
    assert len(offered) == 21
    for name in offered:
        assert getattr(lines_package, name) is getattr(inputs_module, name), name


def test_line_files_may_import_every_input() -> None:
    assert inputs_module.INPUTS.keys() <= set(lines_package.__all__)
