"""The search for cuts under a cap, compared with every choice on a grid."""

from __future__ import annotations

from dataclasses import replace
from itertools import product

import numpy as np
import pytest

from hltnode.processing.selection.tuning import tunable_menu
from hltnode.processing.selection.tuning.errors import TuningError
from hltnode.processing.selection.tuning.search import Goal, Search, reachable_rates, strongest_cuts
from hltnode.processing.selection.tuning.tunable_menu import Measured, Scales, TunableMenu, parts_of
from hltnode.processing.selection.tuning.tuning import Tuned, TuningRequest, tune
from tests.processing.selection.tuning.small_menu import LINES, RATE, N, small_menu

pytest.importorskip("scipy", "1.15")

NAMES = tuple(line.name for line in LINES)


@pytest.fixture(scope="module")
def menu() -> TunableMenu:
    return small_menu()


def request(cap: float | None, **other: object) -> TuningRequest:
    """One search at the cap itself; the correction of the cap has tests of its own."""
    given = {"signals": {"one": 1.0, "two": 1.0}, "max_loss": 0.0, "holdout": 0.3, "seed": 1, "evaluations": 300}
    return TuningRequest(cap=cap, **(given | {"most_cuts": 10, "cross_validation": False} | other))  # type: ignore[arg-type]


def tuned(menu: TunableMenu, cap: float | None, **other: object) -> Tuned:
    return tune(menu, NAMES, request(cap, **other), lambda _: None)


@pytest.mark.parametrize("kept", [64, 2])
def test_decisions_from_kept_conditions_are_those_of_the_line(monkeypatch: pytest.MonkeyPatch, kept: int) -> None:
    """In any order of cuts, also when few conditions are kept."""
    monkeypatch.setattr(tunable_menu, "MAX_KEPT_BYTES", 0)
    monkeypatch.setattr(tunable_menu, "LEAST_KEPT", kept)
    menu, rng = small_menu(), np.random.default_rng(3)
    differing = set()
    for _ in range(60):
        for place, line in enumerate(menu.lines):
            values = tuple(float(rng.choice(cut.levels(5))) for cut in line.cuts)
            stored = menu.events.lines[place]
            expected = np.zeros(menu.events.n_events, np.bool_)
            expected[stored.event[line.selected(stored.values, values)]] = True
            expected &= stored.passes
            assert np.array_equal(menu.line_decisions(place, values), expected)
            differing.add((place, expected.sum()))
    assert len(differing) > 3 * len(menu.lines)


def test_the_search_is_as_good_as_the_best_of_every_choice_on_the_grid(menu: TunableMenu) -> None:
    scales = Scales.of(menu, parts_of(menu.events, 0.3, 1)[0])
    goal = Goal(200.0, np.array([0.5, 0.5]), np.zeros(2), 0.0)
    found = tuned(menu, 200.0, max_loss=1.0)
    grid = [cut.levels(25) for cut in menu.cuts]
    best = min(goal.cost(scales.measured(menu.accepted(point))) for point in product(*grid))
    assert goal.cost(scales.measured(menu.accepted(found.point))) <= best
    assert scales.measured(menu.accepted(found.point)).rate <= 200.0


def test_a_signal_of_a_larger_weight_gains_and_the_other_one_loses(menu: TunableMenu) -> None:
    by_weight = [
        tuned(menu, 150.0, max_loss=1.0, signals={"one": weight, "two": 1.0}).result["tuned"]["searched"]
        for weight in (0.1, 10.0)
    ]
    first, second = ([of["efficiencies"][name]["value"] for of in by_weight] for name in ("one", "two"))
    assert first[1] > first[0] + 0.1
    assert second[0] > second[1] + 0.1


def test_a_signal_loses_no_more_than_the_allowed_part(menu: TunableMenu) -> None:
    for max_loss in (0.0, 0.1):
        found = tuned(menu, None, max_loss=max_loss, signals={"one": 20.0, "two": 1.0}).result
        before, after = (found[of]["searched"]["efficiencies"]["two"]["value"] for of in ("shipped", "tuned"))
        assert after >= (1 - max_loss) * before - 1e-3
        assert found["tuned"]["searched"]["rate_hz"] <= found["shipped"]["searched"]["rate_hz"] * (1 + 1e-9)


def test_the_same_seed_gives_the_same_cuts_and_another_one_holds_out_other_events(menu: TunableMenu) -> None:
    first, again, other = (tuned(menu, 200.0, seed=seed) for seed in (1, 1, 2))
    assert first == again
    assert first.result["tuned"]["held_out"] != other.result["tuned"]["held_out"]
    one, two = (parts_of(menu.events, 0.3, seed)[1] for seed in (1, 2))
    assert [int((one & (menu.events.sample == sample)).sum()) for sample in range(3)] == [0.3 * n for n in N]
    assert (one != two).any()
    assert (parts_of(menu.events, 0.3, 1)[0] == ~one).all()


def test_rates_and_efficiencies_are_sums_of_weights_of_accepted_events() -> None:
    menu = small_menu(weighted=True)
    everything = np.ones(menu.events.n_events, np.bool_)
    accepted = menu.accepted(menu.base)
    found = Scales.of(menu, everything).measured(accepted)
    for sample, value in enumerate((found.rate / RATE, *found.efficiencies)):
        own = menu.events.sample == sample
        weights = menu.events.weights[own]
        assert value == pytest.approx((weights * accepted[own]).sum() / weights.sum())
    result = tuned(menu, None).result
    assert result["samples"]["minbias"]["weighted"]
    total = result["shipped"]["all"]
    assert total["rate_hz"] == pytest.approx(found.rate)
    assert total["low_hz"] < total["rate_hz"] < total["high_hz"]


def test_lines_have_what_they_accept_alone_and_the_overlap_counts_common_events(menu: TunableMenu) -> None:
    found = tuned(menu, 200.0)
    decisions = menu.decisions(found.point)
    own = menu.events.sample == 0
    alone = decisions & (decisions.sum(axis=1, keepdims=True) == 1)
    for i, name in enumerate(NAMES):
        of = found.result["lines"][name]
        assert of["rate_hz"] == pytest.approx(RATE * decisions[own, i].mean())
        assert of["exclusive_hz"] == pytest.approx(RATE * alone[own, i].mean())
        exclusive = of["efficiencies"]["two"]["exclusive"]
        assert exclusive == pytest.approx(alone[menu.events.sample == 2, i].mean())
    both = int((decisions[own, 0] & decisions[own, 1]).sum())
    assert found.result["overlap"]["events"][0][1] == both


def test_the_ratio_of_rates_has_the_error_of_the_events_on_which_both_disagree() -> None:
    menu = small_menu(weighted=True)
    found = tuned(menu, 200.0)
    own = parts_of(menu.events, 0.3, 1)[1] & (menu.events.sample == 0)
    before, after, weights = (
        of[own] for of in (menu.accepted(menu.base), menu.accepted(found.point), menu.events.weights)
    )
    ratio = found.result["rate_ratio"]["held_out"]
    assert (before & ~after).any()
    assert ratio["value"] == pytest.approx(weights[after].sum() / weights[before].sum())
    assert ratio["error"] == pytest.approx((weights[before ^ after] ** 2).sum() ** 0.5 / weights[before].sum())


def test_the_curve_rises_with_the_rate_on_the_searched_events(menu: TunableMenu) -> None:
    curve = tuned(menu, 200.0, max_loss=1.0).result["curve"]
    assert len(curve) >= 4
    rates = [of["searched"]["rate_hz"] for of in curve]
    gains = [of["searched"]["weighted"] for of in curve]
    assert rates == sorted(rates)
    assert gains == sorted(gains)
    assert all(rate <= of["cap_hz"] * (1 + 1e-9) for rate, of in zip(rates, curve, strict=True))


def test_a_cut_that_gains_nothing_keeps_its_value(menu: TunableMenu) -> None:
    scales = Scales.of(menu, np.ones(menu.events.n_events, np.bool_))
    goal = Goal(RATE, np.array([0.5, 0.5]), np.zeros(2), 0.0)
    worthless = (61.0, 10.0)
    search = Search(menu, scales, (0, 1))
    found = search.simplified(goal, worthless)
    assert found[1] == 10.0
    expected = goal.cost(scales.measured(menu.accepted((60.0, 10.0)))) <= goal.cost(
        scales.measured(menu.accepted(worthless))
    )
    assert (found[0] == 60.0) is expected


def test_a_rate_above_the_cap_costs_more_than_it_can_gain() -> None:
    goal = Goal(100.0, np.array([0.5, 0.5]), np.array([0.4, 0.4]), 0.1)
    base = goal.cost(Measured(100.0, np.array([0.4, 0.4])))
    assert goal.cost(Measured(110.0, np.array([1.0, 1.0]))) > base
    assert goal.cost(Measured(50.0, np.array([0.4, 0.4]))) == base
    assert goal.cost(Measured(100.0, np.array([0.36, 0.5]))) < base
    assert goal.cost(Measured(100.0, np.array([0.3, 0.7]))) > base


def test_caps_out_of_reach_and_signals_that_no_cut_selects_are_refused_with_the_limits(menu: TunableMenu) -> None:
    with pytest.raises(TuningError, match=r"--rate 1 Hz: the tightest cuts still accept [\d.]+ Hz"):
        tuned(menu, 1.0)
    with pytest.raises(TuningError, match=r"--rate 1e\+06 kHz|--rate 1000 MHz: the loosest cuts accept 1 kHz only"):
        tuned(menu, 1e9)
    tightest, loosest = reachable_rates(menu, Scales.of(menu, np.ones(menu.events.n_events, np.bool_)), (0, 1))
    assert (tightest, loosest) == ((240.0, 240.0), (0.0, 0.0))


def test_the_strongest_cuts_are_kept_and_cuts_without_an_effect_are_left_out(menu: TunableMenu) -> None:
    scales = Scales.of(menu, np.ones(menu.events.n_events, np.bool_))
    assert strongest_cuts(menu, scales, 10) == (0, 1)
    assert len(strongest_cuts(menu, scales, 1)) == 1
    nothing = Scales(np.zeros_like(scales.factors))
    with pytest.raises(TuningError, match="no cut changes a decision"):
        strongest_cuts(menu, nothing, 10)


def test_a_sample_too_small_for_a_part_that_is_held_out_is_refused(menu: TunableMenu) -> None:
    with pytest.raises(TuningError, match="signal 1 has 300 events, too few"):
        Scales.of(menu, menu.events.sample == 0)
    with pytest.raises(TuningError, match="minimum bias has 600 events, too few"):
        Scales.of(menu, menu.events.sample == 1)


def test_the_rate_of_a_configuration_that_accepts_nothing_is_no_cap(menu: TunableMenu) -> None:
    events = replace(menu.events, weights=np.where((menu.events.sample > 0) | ~menu.accepted(menu.base), 1.0, 0.0))
    silent = TunableMenu(menu.lines, events, RATE)
    with pytest.raises(TuningError, match="--rate shipped: the configuration accepts no event of minimum bias"):
        tuned(silent, None)


def test_the_memory_for_decisions_does_not_grow_with_the_search(
    menu: TunableMenu, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("hltnode.processing.selection.tuning.tunable_menu.MAX_KEPT_BYTES", 75)
    monkeypatch.setattr("hltnode.processing.selection.tuning.tunable_menu.LEAST_KEPT", 2)
    small = TunableMenu(menu.lines, menu.events, RATE)
    for value in np.linspace(0, 240, 9).tolist():
        np.testing.assert_array_equal(small.line_decisions(0, (value,)), menu.line_decisions(0, (value,)))
        assert len(small._kept[0]) <= 2
