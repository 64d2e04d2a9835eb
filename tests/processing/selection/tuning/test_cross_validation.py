"""The cap of a search is corrected so that cuts keep the cap on events that the search has not seen."""

from __future__ import annotations

from collections.abc import Callable

import numpy as np
import pytest
from numpy.typing import NDArray

from hltnode.processing.selection.tuning.cross_validation import (
    FOLDS,
    ROUNDS,
    Counted,
    corrected_search,
)

Bools = NDArray[np.bool_]
CAP = 0.1
N_LINES = 6
N_TOYS = 100
N_MENUS = 120


def counted(weights: NDArray[np.float64], per: Bools | None = None, cap: float = CAP) -> Counted:
    return Counted(weights=weights, per=np.ones(len(weights), np.bool_) if per is None else per, cap=cap)


class RandomMenus:
    """Menus of lines with independent cuts on uniform variables, whose rates are known.

    Background of `n_background` events; weighted: half of it is drawn with larger values of the first variable, as an
    enriched sample. A search takes the menu of the largest efficiency whose rate on its events is below the cap.
    """

    def __init__(self, seed: int, *, weighted: bool, n_background: int = 400, n_signal: int = 300) -> None:
        rng = np.random.default_rng(seed)
        # The rate of N lines is 1 - product(1 - rate of each); it lies between 0.4 and 1.9 times the cap.
        shares = rng.dirichlet(np.ones(N_LINES), N_MENUS)
        cuts = np.exp(np.log1p(-CAP * rng.uniform(0.4, 1.9, (N_MENUS, 1))) * shares)
        self.rates = 1.0 - cuts.prod(axis=1)
        background = rng.random((n_background, N_LINES))
        self.weights = np.ones(n_background + n_signal)
        if weighted:
            enriched = rng.random(n_background) < 0.5
            background[enriched, 0] **= 0.25
            self.weights[:n_background] = 1.0 / (0.5 + 0.5 * 4.0 * background[:, 0] ** 3)
        variables = np.concatenate([background, rng.random((n_signal, N_LINES)) ** 0.5])
        self.decisions: Bools = np.asarray((variables[None] > cuts[:, None]).any(axis=2))
        self.sample = np.repeat([0, 1], [n_background, n_signal])

    def chosen(self, events: Bools, factor: float) -> int:
        own = events & (self.sample == 0)
        seen = self.decisions[:, own] @ self.weights[own] / self.weights[own].sum()
        efficiency = self.decisions[:, events & (self.sample == 1)].mean(axis=1)
        return int(np.argmax(np.where(seen <= factor * CAP, efficiency, -seen)))

    def find(self, events: Bools, factor: float) -> Bools:
        found: Bools = self.decisions[self.chosen(events, factor)]
        return found

    def counted(self) -> Counted:
        return counted(np.where(self.sample == 0, self.weights, 0.0))


@pytest.mark.parametrize("weighted", [False, True])
def test_the_true_rate_of_corrected_searches_is_the_cap_on_average(weighted: bool) -> None:
    plain, corrected = [], []
    for seed in range(N_TOYS):
        menus = RandomMenus(seed, weighted=weighted)
        everything = np.ones(len(menus.sample), np.bool_)
        found = corrected_search(menus.find, menus.counted(), menus.sample, everything, seed)
        plain.append(menus.rates[menus.chosen(everything, 1.0)] / CAP)
        corrected.append(menus.rates[menus.chosen(everything, found.factor)] / CAP)
    error = float(np.std(corrected)) / np.sqrt(N_TOYS)
    assert error < 0.02
    assert np.mean(plain) > 1 + 5 * error, "without the correction the searches exceed the cap"
    assert abs(np.mean(corrected) - 1) < 2.5 * error


def recorded(
    accepted_of: Callable[[Bools], Bools],
) -> tuple[list[tuple[Bools, float]], Callable[[Bools, float], Bools]]:
    calls: list[tuple[Bools, float]] = []

    def find(events: Bools, factor: float) -> Bools:
        calls.append((events, factor))
        return accepted_of(events)

    return calls, find


def test_each_event_of_the_search_is_left_out_once_in_each_round_and_no_other_is_given() -> None:
    sample = np.repeat([0, 1, 2], [23, 7, 1])
    searched = np.arange(31) % 5 != 0
    searched[30] = True
    calls, find = recorded(lambda events: ~events)
    found = corrected_search(find, counted(np.ones(31)), sample, searched, 3)
    assert len(calls) == FOLDS * ROUNDS
    rounds = [np.array([events for events, _ in calls[i * FOLDS : (i + 1) * FOLDS]]) for i in range(ROUNDS)]
    alone = np.arange(31) == 30
    for trained in rounds:
        np.testing.assert_array_equal(trained.sum(axis=0), np.where(alone, FOLDS, (FOLDS - 1) * searched))
        sizes = [np.count_nonzero(events[sample == 0]) for events in trained]
        assert max(sizes) - min(sizes) <= 1
        assert all(events[sample == 1].any() for events in trained)
    assert (rounds[0] != rounds[1]).any(), "the second round divides differently"
    np.testing.assert_array_equal(found.unseen, searched & ~alone)


def test_the_decision_of_an_event_is_that_of_the_search_without_it() -> None:
    weights = np.arange(1.0, 41.0)
    _, find = recorded(lambda events: events)
    found = corrected_search(find, counted(weights, cap=1.0), np.zeros(40, np.int64), np.ones(40, np.bool_), 1)
    assert not found.unseen.any()
    assert (found.optimism, found.factor) == (1.0, 1.0), "a rate below that of the search is no reason to loosen cuts"


def test_the_optimism_is_the_ratio_of_weighted_rates_scaled_to_all_events() -> None:
    # The cuts accept all unseen events, and those of the search with an even number, half of the weights.
    number = np.arange(60)
    weights = np.repeat(np.arange(1.0, 31.0), 2)
    calls, find = recorded(lambda events: ~events | (number % 2 == 0))
    searched = number < 50
    found = corrected_search(find, counted(weights, cap=0.6), np.zeros(60, np.int64), searched, 1)
    seen = np.array([weights[events & (number % 2 == 0)].sum() / weights[events].sum() for events, _ in calls])
    means = seen.reshape(ROUNDS, FOLDS).mean(axis=1)
    excesses = (1 / means - 1) * (FOLDS - 1) / FOLDS
    assert found.optimism == pytest.approx(1 + excesses.mean())
    assert found.error == pytest.approx(abs(excesses[0] - excesses[1]) / 2)
    assert found.error > 0
    # The searches use 0.5 of a cap of 0.6, so the cap falls less than by the optimism.
    first = 0.6 / ((1 + excesses[0]) * means[0])
    assert [factor for _, factor in calls] == pytest.approx([1.0] * FOLDS + [first] * FOLDS)
    used = np.mean([means[0] / 0.6, means[1] / (first * 0.6)])
    assert found.factor == pytest.approx(1 / (found.optimism * used))
    assert first < 1


def test_a_rate_relative_to_shipped_cuts_is_divided_by_theirs_on_the_same_events() -> None:
    weights, per = np.array([1.0, 2.0, 4.0, 8.0, 0.0]), np.array([True, False, True, False, True])
    of = np.array([True, True, True, False, True])
    accepted = np.array([True, True, False, True, True])
    assert counted(weights, per).rate(accepted, of) == 3.0 / 5.0
    assert counted(weights).rate(accepted, of) == 3.0 / 7.0
    assert np.isnan(counted(weights, ~of).rate(accepted, of))


def test_the_same_seed_gives_the_same_correction_and_signals_have_no_part_in_it() -> None:
    menus = RandomMenus(5, weighted=True)
    everything = np.ones(len(menus.sample), np.bool_)
    one, again, other = (
        corrected_search(menus.find, menus.counted(), menus.sample, everything, seed) for seed in (1, 1, 2)
    )
    assert (one.optimism, one.factor) == (again.optimism, again.factor)
    np.testing.assert_array_equal(one.unseen, again.unseen)
    assert one.optimism != other.optimism
    calls, find = recorded(lambda events: np.where(menus.sample == 0, menus.decisions[0], ~events))
    without = corrected_search(find, menus.counted(), menus.sample, everything, 1)
    assert len(calls) == FOLDS * ROUNDS
    assert without.optimism == pytest.approx(1.0, abs=1e-2)


def test_cuts_that_accept_nothing_need_no_correction() -> None:
    _, find = recorded(lambda events: np.zeros(len(events), np.bool_))
    found = corrected_search(find, counted(np.ones(20)), np.zeros(20, np.int64), np.ones(20, np.bool_), 1)
    assert (found.optimism, found.factor) == (1.0, 1.0)
