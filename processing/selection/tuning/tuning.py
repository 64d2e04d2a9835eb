"""One tuning: the search, the curve of rate against efficiency, and the result as a JSON object."""

from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from typing import Any

import numpy as np
from numpy.typing import NDArray

from hltnode.processing.framework.statistics import WeightSums, fraction
from hltnode.processing.selection.evaluation.lines import Bools
from hltnode.processing.selection.event_rate import frequency
from hltnode.processing.selection.tuning.cross_validation import (
    FOLDS,
    ROUNDS,
    Correction,
    Counted,
    corrected_search,
)
from hltnode.processing.selection.tuning.errors import TuningError
from hltnode.processing.selection.tuning.search import Goal, Search, reachable_rates, strongest_cuts
from hltnode.processing.selection.tuning.tunable_line import Values
from hltnode.processing.selection.tuning.tunable_menu import Scales, TunableMenu, parts_of

CURVE = (0.5, 0.7, 0.85, 1.0, 1.15, 1.3, 1.6)
"""Rates of the curve, in units of the cap."""
WANTED_ERROR = 0.02
"""The relative error of the rate for which the result states the number of events that it needs."""


@dataclass(frozen=True, slots=True, kw_only=True)
class TuningRequest:
    """What is asked for.

    cap: Hz; None: the rate of the shipped cuts. signals: names of the signals, with the weight of each. holdout: the
    part of the events of each sample that the search does not see. evaluations: points of the evolution.
    cross_validation: correct the cap; without it, the search keeps the cap itself.
    """

    cap: float | None
    signals: dict[str, float]
    max_loss: float
    holdout: float
    seed: int
    evaluations: int
    most_cuts: int
    cross_validation: bool = True


@dataclass(frozen=True, slots=True)
class Tuned:
    """The tuned point of a menu, and the JSON object of the tuning."""

    point: Values
    result: dict[str, Any]


def tune(
    menu: TunableMenu, line_names: Sequence[str], request: TuningRequest, progress: Callable[[int], None]
) -> Tuned:
    """Tune the cuts of a menu. Raises TuningError for a cap out of reach, and signals that no cut can select."""
    searched, held_out = parts_of(menu.events, request.holdout, request.seed)
    scales = Scales.of(menu, searched)
    Scales.of(menu, held_out)
    places = strongest_cuts(menu, scales, request.most_cuts)
    tightest, loosest = (scales.measured(menu.accepted(point)) for point in reachable_rates(menu, scales, places))
    for name, efficiency in zip(request.signals, loosest.efficiencies.tolist(), strict=True):
        if not efficiency:
            raise TuningError(f"--signal {name}: no line selects an event of it, even with the loosest cuts")
    shipped = scales.measured(menu.accepted(menu.base))
    cap = shipped.rate if request.cap is None else request.cap
    if not cap > 0:
        raise TuningError("--rate shipped: the configuration accepts no event of minimum bias, so give a rate above 0")
    if not cap >= tightest.rate:
        raise TuningError(
            f"--rate {frequency(cap)}: the tightest cuts still accept {frequency(tightest.rate)}; widen the "
            "ranges with --tune, or tune more lines"
        )
    if cap > max(loosest.rate, shipped.rate):
        raise TuningError(
            f"--rate {frequency(cap)}: the loosest cuts accept {frequency(loosest.rate)} only; widen the ranges "
            "with --tune, or tune more lines"
        )
    weights = np.array(list(request.signals.values()))
    finder = _Finder(menu, request, weights / weights.sum(), places, shipped.rate, progress)
    counted = _counted(menu, request, cap)
    correction = None
    if request.cross_validation:
        correction = corrected_search(finder.accepted, counted, menu.events.sample, searched, request.seed)
    factor = 1.0 if correction is None else max(correction.factor, tightest.rate / cap)
    found = finder.found(searched, factor)
    point, goal = found.point, found.goal
    curve = _curve(found, cap, (tightest.rate, loosest.rate))
    result = {
        "seed": request.seed,
        "holdout": request.holdout,
        "max_loss": request.max_loss,
        "event_rate_hz": menu.event_rate,
        "cap_hz": cap,
        "reachable_hz": [tightest.rate, loosest.rate],
        "evaluations": finder.evaluations,
        "cross_validation": (
            None if correction is None else _cross_validation(menu, point, goal, request, searched, counted, correction)
        ),
        "samples": _samples(menu, request),
        "cuts": [
            {
                "line": menu.cuts[place].line,
                "cut": menu.cuts[place].cut,
                "unit": menu.cuts[place].unit,
                "before": menu.cuts[place].base,
                "after": point[place],
                "low": menu.cuts[place].low,
                "high": menu.cuts[place].high,
            }
            for place in places
        ],
        "shipped": _on_parts(menu, menu.base, goal, request, searched, held_out),
        "tuned": _on_parts(menu, point, goal, request, searched, held_out),
        "rate_ratio": {"searched": _ratio(menu, point, searched), "held_out": _ratio(menu, point, held_out)},
        "lines": _lines(menu, line_names, point, request),
        "overlap": _overlap(menu, line_names, point),
        "curve": [
            {"cap_hz": of, "searched": _on(menu, menu.accepted(at), goal, request, searched)}
            | {"held_out": _on(menu, menu.accepted(at), goal, request, held_out)}
            for of, at in curve
        ],
    }
    return Tuned(point, result)


@dataclass(frozen=True, slots=True)
class _Found:
    """A search: the point that it found, and what other caps need."""

    search: Search
    goal: Goal
    point: Values
    priced: Sequence[Values]


class _Finder:
    """Searches on parts of the events.

    weights: f64[signals], their sum is 1. places: of the tuned cuts. shipped_rate: on all events of the search.
    """

    def __init__(
        self,
        menu: TunableMenu,
        request: TuningRequest,
        weights: NDArray[np.float64],
        places: tuple[int, ...],
        shipped_rate: float,
        progress: Callable[[int], None],
    ) -> None:
        self._searches: list[Search] = []
        self._menu, self._request = menu, request
        self._weights, self._places = weights, places
        self._shipped_rate, self._progress = shipped_rate, progress

    @property
    def evaluations(self) -> int:
        """Choices of cuts that all searches tried."""
        return sum(search.evaluations for search in self._searches)

    def found(self, events: Bools, factor: float) -> _Found:
        """The search on some events, bool[events], for a multiple of the cap."""
        request = self._request
        scales = Scales.of(self._menu, events)
        shipped = scales.measured(self._menu.accepted(self._menu.base))
        cap = (shipped.rate or self._shipped_rate) if request.cap is None else request.cap
        goal = Goal(factor * cap, self._weights, shipped.efficiencies, request.max_loss)
        search = Search(self._menu, scales, self._places, self._progress)
        self._searches.append(search)
        priced = search.priced(goal)
        point = search.best(goal, [search.evolved(goal, request.evaluations, request.seed), *priced])
        return _Found(search, goal, point, priced)

    def accepted(self, events: Bools, factor: float) -> Bools:
        """The decisions of the found cuts on all events, bool[events]."""
        return self._menu.accepted(self.found(events, factor).point)


def _counted(menu: TunableMenu, request: TuningRequest, cap: float) -> Counted:
    """The rate of a cap that is a number; relative to the shipped cuts where they are the cap."""
    weights = np.where(menu.events.sample == 0, menu.events.weights, 0.0)
    if request.cap is None:
        return Counted(weights=weights, per=menu.accepted(menu.base), cap=1.0)
    return Counted(weights=weights, per=np.ones(len(weights), np.bool_), cap=cap / menu.event_rate)


def _cross_validation(
    menu: TunableMenu,
    point: Values,
    goal: Goal,
    request: TuningRequest,
    searched: Bools,
    counted: Counted,
    correction: Correction,
) -> dict[str, Any]:
    """The expected rate and efficiencies on unseen events, their errors, and the events that a smaller error needs.

    Both the size of the sample and the optimism have an error. Relative to the shipped cuts, only events that both
    decide differently contribute to the former. None without an accepted event.
    """
    accepted = menu.accepted(point)
    of = _on(menu, accepted, goal, request, searched)
    excess = correction.error / correction.optimism
    expected = _on(menu, correction.unseen, goal, request, searched)
    rate = expected["rate_hz"] = of["rate_hz"] * correction.optimism
    for end, sign in (("low_hz", -1.0), ("high_hz", 1.0)):
        of_sample = abs(of[end] - of["rate_hz"]) * correction.optimism
        expected[end] = max(rate + sign * float(np.hypot(of_sample, rate * excess)), 0.0)
    error: float | None = None
    if rate and request.cap is None:
        moved = searched & (accepted != menu.accepted(menu.base))
        of_sample = float(np.sqrt((counted.weights[moved] ** 2).sum()) / counted.weights[searched & accepted].sum())
        error = float(np.hypot(of_sample, excess))
    elif rate:
        error = (expected["high_hz"] - expected["low_hz"]) / (2 * rate)
    n = int(np.count_nonzero(menu.events.sample == 0))
    return {
        "folds": FOLDS,
        "rounds": ROUNDS,
        "search_cap_hz": goal.cap,
        "optimism": {"value": correction.optimism, "error": correction.error},
        "unseen": expected,
        "relative_error": error,
        "wanted_error": WANTED_ERROR,
        "events": n,
        "events_needed": None if error is None else int(np.ceil(n * (error / WANTED_ERROR) ** 2)),
    }


def _curve(found: _Found, cap: float, reach: tuple[float, float]) -> list[tuple[float, Values]]:
    """The best points for other caps, ascending; the point of a lower cap is good for a higher one.

    Each search keeps a cap that is corrected as that of the tuned cuts.
    """
    points: dict[float, Values] = {}
    for factor in CURVE:
        kept = factor * found.goal.cap
        if factor == 1.0:
            points[cap] = found.point
        elif reach[0] <= kept <= reach[1]:
            goal = replace(found.goal, cap=kept)
            points[factor * cap] = found.search.best(goal, [*found.priced, found.point, *points.values()])
    return list(points.items())


def _samples(menu: TunableMenu, request: TuningRequest) -> dict[str, Any]:
    found = {}
    for sample, (name, kinds) in enumerate(zip(("minbias", *request.signals), menu.events.kinds, strict=True)):
        sums = WeightSums.of(menu.events.weights[menu.events.sample == sample])
        found[name] = {"events": sums.events, **kinds.described(sums)}
        if sample:
            found[name]["weight"] = request.signals[name]
    return found


def _on_parts(
    menu: TunableMenu, point: Values, goal: Goal, request: TuningRequest, searched: Bools, held_out: Bools
) -> dict[str, Any]:
    """Rate and efficiencies of a point on the searched events, on those held out, and on all."""
    parts = {"searched": searched, "held_out": held_out, "all": searched | held_out}
    accepted = menu.accepted(point)
    return {name: _on(menu, accepted, goal, request, part) for name, part in parts.items()}


def _on(menu: TunableMenu, accepted: Bools, goal: Goal, request: TuningRequest, part: Bools) -> dict[str, Any]:
    """Rate and efficiencies with intervals of 68.3 % of some decisions, and the weighted efficiency."""
    rate = _fraction(menu, accepted, part, 0)
    efficiencies = {name: _fraction(menu, accepted, part, 1 + i) for i, name in enumerate(request.signals)}
    return {
        "rate_hz": rate["value"] * menu.event_rate,
        "low_hz": rate["low"] * menu.event_rate,
        "high_hz": rate["high"] * menu.event_rate,
        "efficiencies": efficiencies,
        "weighted": float(goal.weights @ [of["value"] for of in efficiencies.values()]),
    }


def _ratio(menu: TunableMenu, point: Values, part: Bools) -> dict[str, float | None]:
    """The tuned rate divided by the shipped one on the same events, and its error.

    Only events on which the cuts disagree contribute to the error. None without an accepted event.
    """
    own = part & (menu.events.sample == 0)
    weights = menu.events.weights[own]
    before, after = menu.accepted(menu.base)[own], menu.accepted(point)[own]
    shipped, tuned = float(weights[before].sum()), float(weights[after].sum())
    if not shipped:
        return {"value": None, "error": None}
    moved = weights[before != after]
    return {"value": tuned / shipped, "error": float(np.sqrt((moved**2).sum())) / shipped}


def _fraction(menu: TunableMenu, accepted: Bools, part: Bools, sample: int) -> dict[str, float]:
    own = part & (menu.events.sample == sample)
    weights = menu.events.weights[own]
    passed = weights[accepted[own]]
    found = fraction(float(passed.sum()), float((passed**2).sum()), WeightSums.of(weights))
    return {"value": found.value, "low": found.low, "high": found.high}


def _lines(menu: TunableMenu, names: Sequence[str], point: Values, request: TuningRequest) -> dict[str, dict[str, Any]]:
    """What each line costs and brings, on all events: rates, and efficiencies of the signals, in all and alone."""
    scales = Scales.of(menu, np.ones(menu.events.n_events, np.bool_))
    shipped, tuned = menu.events.fired, menu.decisions(point)
    alone = tuned & (tuned.sum(axis=1, keepdims=True) == 1)
    before, after, only = (_sums(decisions, scales) for decisions in (shipped, tuned, alone))
    signals = list(request.signals)
    return {
        name: {
            "shipped_hz": float(before[0, i]),
            "rate_hz": float(after[0, i]),
            "exclusive_hz": float(only[0, i]),
            "efficiencies": {
                signal: {"shipped": float(before[1 + j, i]), "tuned": float(after[1 + j, i])}
                | {"exclusive": float(only[1 + j, i])}
                for j, signal in enumerate(signals)
            },
        }
        for i, name in enumerate(names)
    }


def _sums(decisions: Bools, scales: Scales) -> NDArray[np.float64]:
    """f64[samples, lines]: rates in Hz, and efficiencies."""
    found: NDArray[np.float64] = scales.factors.T @ decisions.astype(np.float64)
    return found


def _overlap(menu: TunableMenu, names: Sequence[str], point: Values) -> dict[str, Any]:
    """Events of minimum bias that two tuned lines both select; the diagonal holds those of one line."""
    own = menu.events.sample == 0
    decisions = menu.decisions(point)[own].astype(np.float64)
    weights = menu.events.weights[own]
    return {
        "lines": list(names),
        "events": (decisions.T @ decisions).astype(np.int64).tolist(),
        "weights": ((decisions.T * weights) @ decisions).tolist(),
    }
