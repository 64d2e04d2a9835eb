"""Routing bits of lines."""

from __future__ import annotations

import pytest

from hltnode.processing.lhcb.lines.routing import ROUTING_RULES
from hltnode.processing.selection.reports.routing import EVERY_LINE, routing_of_lines


def bits_of(line: str) -> set[int]:
    """The routing bits of a line by LHCb's rules."""
    (words,) = routing_of_lines(ROUTING_RULES, [line]).tolist()
    return {32 * i + bit for i, word in enumerate(words) for bit in range(32) if word >> bit & 1}


@pytest.mark.parametrize(
    ("line", "bits"),
    [
        ("Hlt1TrackMVA", {14}),
        ("Hlt1TwoTrackMVACharmXSec", {14}),
        ("Hlt1DiMuonHighMass", {14}),
        ("Hlt1NDisplacedVelo", {14}),
        ("Hlt1VeloMicroBias", set()),
        ("Hlt1Passthrough", set()),
        ("Hlt1GECPassthrough", set()),
        ("Hlt1TAEPassthrough", {6}),
        ("Hlt1ODINLumi", {1}),
        ("Hlt1ODIN1kHzLumi", {1}),
        ("Hlt1ODINNoBias", {16}),
        ("Hlt1ODINVeloOpen", {8}),
        ("Hlt1BeamGas", set()),
        ("Hlt1BothBeams", set()),
        ("Hlt1NoBeam", set()),
        ("Hlt1RICH1Alignment", {5}),
        ("Hlt1RICH2Alignment", {7}),
        ("Hlt1D2KPiAlignment", {3}),
        ("Hlt1DiMuonHighMassAlignment", {4}),
        ("Hlt1Pi02GammaGamma", {9}),
        ("MyLine", set()),
    ],
)
def test_lines_of_lhcb_set_the_bits_of_their_streams(line: str, bits: set[int]) -> None:
    assert bits_of(line) == bits


def test_without_rules_of_a_chain_every_line_is_physics() -> None:
    assert routing_of_lines(EVERY_LINE, ["a", "b"]).tolist() == [[1 << 14, 0, 0]] * 2


def test_bits_of_all_words_are_set_and_the_whole_name_is_matched() -> None:
    rules = {0: "a", 31: "a|b", 32: "b.*", 95: ".*c"}
    assert routing_of_lines(rules, ["a", "b", "ab", "bc"]).tolist() == [
        [1 | 1 << 31, 0, 0],
        [1 << 31, 1, 0],
        [0, 0, 0],
        [0, 1, 1 << 31],
    ]


@pytest.mark.parametrize("rules", [{96: "a"}, {-1: "a"}, {25: "a"}, {1: "("}])
def test_an_impossible_rule_is_refused_with_its_bit(rules: dict[int, str]) -> None:
    with pytest.raises(ValueError, match=f"routing bit {next(iter(rules))}"):
        routing_of_lines(rules, ["a"])
