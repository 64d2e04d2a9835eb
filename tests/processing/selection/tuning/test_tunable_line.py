"""A line as a function of its cuts decides like the line recorded with these cuts, to the last bit."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
import pytest

from hltnode.processing.selection.configuration.trigger_config import TriggerConfig
from hltnode.processing.selection.evaluation.lines import Evaluator
from hltnode.processing.selection.expressions.functions import log, where
from hltnode.processing.selection.expressions.units import MeV, mm
from hltnode.processing.selection.lines.inputs import count_of
from hltnode.processing.selection.lines.line import Line
from hltnode.processing.selection.tuning.cuts import TunedCut
from hltnode.processing.selection.tuning.errors import NotTunableError, TuningError
from hltnode.processing.selection.tuning.tunable_line import TunableLine, tunable_line
from tests.processing.selection import toy_detector as toy

N_EVENTS = 60


def thresholds(t: Any, low: float = 0.5, high: float = 20.0, hits: int = 10) -> Any:
    return (t.pt > low * MeV) & (t.pt <= high * MeV) & (t.hits >= hits) & t.is_muon


def computed(t: Any, low: float = 0.5, high: float = 3.0) -> Any:
    s = t.pt / MeV - low
    small = (s < high) & (log(abs(t.a)) > 1.0 / (s - 2.0) ** 2 + low * high)
    return t.is_muon & (small | (s > high))


def chosen(t: Any, low: float = 0.5, high: float = 3.0) -> Any:
    return (t.hits > 37) & (~t.has_vertex | (where(t.x > low * mm, t.a, t.b) < high) & ~(t.vertex.z > high * mm))


def negated(t: Any, low: float = 0.5, high: float = 3.0) -> Any:
    return (t.hits > 37) & ~((t.a > 0.0) & (t.pt > low * MeV)) & ~(t.is_muon & (t.x < high * mm))


def made_of_two(t: Any, low: float = 0.5, high: float = 3.0) -> Any:
    return (t.hits > 37) & (t.pt > low * high * MeV)


def smaller_of_two(t: Any, low: float = 0.5, high: float = 3.0) -> Any:
    return (t.hits > 37) & (t.pt > min(low, high - 2.5) * MeV)


CUTS = {"low": (0.1, 2.0), "high": (1.0, 30.0), "hits": (2.0, 30.0)}


def line_of(selects: Callable[..., Any], of: Any = toy.tracks, *, asked: bool = False) -> tuple[Line, TunableLine]:
    line = Line("Tuned", of, selects)
    cuts = [
        TunedCut("Tuned", name, float(value), *CUTS[name], isinstance(value, int), asked=asked)  # type: ignore[arg-type]
        for name, value in line.parameters.items()
    ]
    found, refused = tunable_line(TriggerConfig(lines=(line,)), cuts)
    assert not refused
    assert found is not None
    return line, found


def evaluator_of(seed: int, line: Line) -> Evaluator:
    given = toy.random_events(N_EVENTS, seed)
    return Evaluator({column: given[column.name].astype(column.dtype) for column in line.columns}, N_EVENTS)


def random_values(line: TunableLine, seed: int, n: int) -> list[tuple[float, ...]]:
    rng = np.random.default_rng(seed)
    drawn = [tuple(cut.rounded(rng.uniform(cut.low, cut.high)) for cut in line.cuts) for _ in range(n)]
    return [line.base, tuple(c.low for c in line.cuts), tuple(c.high for c in line.cuts), *drawn]


@pytest.mark.parametrize("selects", [thresholds, computed, chosen, negated, made_of_two, smaller_of_two])
def test_any_choice_of_cuts_decides_like_the_line_recorded_with_it(selects: Callable[..., Any]) -> None:
    line, tuned = line_of(selects)
    trigger = TriggerConfig(lines=(line,))
    evaluator = evaluator_of(3, line)
    event, values = evaluator.values_of(line.variable, tuned.roots, tuned.condition)
    seen = set()
    for point in random_values(tuned, 5, 40):
        decided = np.zeros(N_EVENTS, np.bool_)
        decided[event[tuned.selected(values, point)]] = True
        expected = evaluator.decide(
            trigger.with_cuts("Tuned", {cut.cut: value for cut, value in zip(tuned.cuts, point, strict=True)})
        )
        np.testing.assert_array_equal(decided, expected)
        assert tuned.constants(point) == tuned.recorded_constants(point)
        seen.add(int(decided.sum()))
    assert len(seen) > 1, "the cuts must change decisions"


def test_a_line_keeps_a_limited_number_of_recordings(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("hltnode.processing.selection.tuning.tunable_line.MAX_KNOWN", 5)
    _, tuned = line_of(made_of_two)
    for point in random_values(tuned, 5, 20):
        assert tuned.constants(point) == tuned.recorded_constants(point)
        assert len(tuned._known) <= 5


def test_a_count_of_other_candidates_is_a_number_that_a_cut_may_compare() -> None:
    def selects(e: Any, hits: int = 10) -> Any:
        return count_of(toy.tracks, lambda t: t.is_muon) > hits

    line, tuned = line_of(selects, toy.event)
    event, values = evaluator_of(3, line).values_of(None, tuned.roots, tuned.condition)
    found = {hits: set(event[tuned.selected(values, (hits,))].tolist()) for hits in (2.0, 10.0, 15.0)}
    assert found[2.0] > found[10.0] > found[15.0]


def test_only_candidates_that_some_choice_may_select_are_stored() -> None:
    line, tuned = line_of(thresholds)
    evaluator = evaluator_of(3, line)
    event, values = evaluator.values_of(line.variable, tuned.roots, tuned.condition)
    loosest = {"low": CUTS["low"][0], "high": CUTS["high"][1], "hits": CUTS["hits"][0]}
    selected, _ = evaluator.selected(TriggerConfig(lines=(line,)).with_cuts("Tuned", loosest))
    assert 0 < len(event) < evaluator.selected(Line("All", toy.tracks, lambda t: t.pt == t.pt))[0].size / 4
    np.testing.assert_array_equal(event, selected)
    assert tuned.selected(values, tuple(loosest.values())).all()


def test_values_beyond_the_range_are_refused_because_their_candidates_are_not_stored() -> None:
    _, tuned = line_of(thresholds)
    with pytest.raises(TuningError, match=r"Tuned\.low=0.05: the cut does not rise or fall over its range"):
        tuned.constants((0.05, 20.0, 10.0))
    with pytest.raises(TuningError, match=r"Tuned\.high=31"):
        tuned.constants((0.5, 31.0, 10.0))


def bits(t: Any, hits: int = 10) -> Any:
    return (t.hits & hits) != 0


def equal(t: Any, hits: int = 10) -> Any:
    return t.hits == hits


def of_others(t: Any, low: float = 0.5) -> Any:
    return count_of(toy.tracks, lambda other: other.pt > low * MeV) > 3


def other_operations(t: Any, low: float = 0.5) -> Any:
    return (t.pt > 1 * MeV) if low > 1 else (t.x > 1 * mm)


def another_number_of_operations(t: Any, low: float = 0.5) -> Any:
    return (t.pt > 1 * MeV) if low > 1 else ~(t.pt > 1 * MeV)


def without_effect(t: Any, low: float = 0.5) -> Any:
    return t.is_muon


@pytest.mark.parametrize(
    ("selects", "reason"),
    [
        (bits, "must be met exactly, or bits"),
        (equal, "must be met exactly, or bits"),
        (of_others, "a condition on other candidates"),
        (other_operations, "changes the operations"),
        (another_number_of_operations, "changes the operations"),
        (without_effect, "changes no operation"),
    ],
)
def test_a_number_that_is_no_threshold_is_refused_by_name_if_the_user_asked_for_it(
    selects: Callable[..., Any], reason: str
) -> None:
    with pytest.raises(NotTunableError, match=rf"Tuned\.\w+: .*{reason}"):
        line_of(selects, asked=True)
    line = Line("Tuned", toy.tracks, selects)
    ((name, value),) = line.parameters.items()
    cut = TunedCut("Tuned", name, float(value), *CUTS[name], isinstance(value, int))  # type: ignore[arg-type]
    found, refused = tunable_line(TriggerConfig(lines=(line,)), [cut])
    assert found is None
    assert reason in refused[f"Tuned.{name}"]
