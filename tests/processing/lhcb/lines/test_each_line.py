"""Each line of the menu decides as plain Python on both sides of every cut, sign and choice of its description."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace

import pytest

from hltnode.processing.lhcb.lines.line_types.half_lines import LINES as OF_HALVES
from hltnode.processing.lhcb.lines.menu import HLT1_MENU
from hltnode.processing.selection.lines.line_type import LineType
from tests.processing.lhcb.lines.both_sides import BOTH_SIDES, sides_of
from tests.processing.lhcb.lines.candidates import Event, case_of, event_with
from tests.processing.lhcb.lines.plain_lines import PLAIN_LINES, SCALES
from tests.processing.selection.line_evaluators import Decided, Evaluator, by_compiler, by_numpy

LINES = (*HLT1_MENU.of("hlt1_2026"), *OF_HALVES)
NAMES = tuple(line.name for line in LINES)


@dataclass(frozen=True)
class Tried:
    """An event made for a line."""

    line: str
    event: Event
    selected: bool
    change: str


@pytest.fixture(scope="module")
def tried() -> Sequence[Tried]:
    return [
        Tried(line, event_with(candidate), selected, change)
        for line in NAMES
        for candidate, selected, change in sides_of(line)
    ]


@pytest.fixture(scope="module", params=[by_numpy, by_compiler])
def decided(request: pytest.FixtureRequest, tried: Sequence[Tried]) -> Decided:
    evaluate: Evaluator = request.param
    lines = [replace(line, prescale=1.0, postscale=1.0) for line in LINES]
    return evaluate(case_of(lines, [one.event for one in tried]))


def test_the_menu_has_the_lines_and_the_scales_of_the_description() -> None:
    assert set(NAMES) == set(PLAIN_LINES) == set(BOTH_SIDES)
    scales = {line.name: (line.prescale, line.postscale) for line in LINES}
    assert scales == {name: SCALES.get(name, (1, 1)) for name in NAMES}


@pytest.mark.parametrize("line", LINES, ids=NAMES)
def test_the_description_of_a_line_is_a_whole_sentence(line: LineType) -> None:
    """It is the first line of the docstring, in the reference and in the document of a TCK."""
    assert line.line().description.endswith(".")


@pytest.mark.parametrize("line", NAMES)
def test_a_line_selects_one_side_of_each_of_its_cuts(line: str, tried: Sequence[Tried], decided: Decided) -> None:
    number = NAMES.index(line)
    wrong = [
        f"{one.change}: {'not ' * one.selected}selected"
        for one, mask in zip(tried, decided.masks, strict=True)
        if one.line == line and bool(mask >> number & 1) != one.selected
    ]
    assert wrong == []


@pytest.mark.parametrize("line", NAMES)
def test_a_line_decides_on_the_candidates_of_all_lines_as_plain_python(
    line: str, tried: Sequence[Tried], decided: Decided
) -> None:
    number, plain = NAMES.index(line), PLAIN_LINES[line]
    wrong = [
        f"{one.line} with {one.change}: {'' if mask >> number & 1 else 'not '}selected"
        for one, mask in zip(tried, decided.masks, strict=True)
        if plain(one.event) != bool(mask >> number & 1)
    ]
    assert wrong == []
