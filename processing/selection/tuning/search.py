"""The search for cuts with the largest efficiencies under a cap on the rate of all lines.

Three ways find cuts, and the best result counts. Differential evolution of scipy (R. Storn and K. Price, J. Global
Optim. 11 (1997) 341) searches the whole space. Sweeps over single cuts with a price on the rate instead of a cap
(H. Everett, Oper. Res. 11 (1963) 399) exchange the rate of one line for that of another, which a sweep at the cap
cannot. Sweeps at the cap, at last on a finer grid, use what is left of it. The same seed gives the same cuts.
"""

from collections.abc import Callable, Sequence
from dataclasses import dataclass, field

import numpy as np
from numpy.typing import NDArray

from hltnode.processing.selection.tuning.errors import TuningError
from hltnode.processing.selection.tuning.tunable_line import Values
from hltnode.processing.selection.tuning.tunable_menu import Measured, Scales, TunableMenu

LEVELS = 25
"""Values of a cut in the evolution. The finer grid has as many between the neighbours of the best value."""
MAX_CUTS = 24
"""Cuts that are tuned, those of the largest effect: the evolution needs ever more points in more dimensions."""
LEAST_EFFECT = 1e-4
"""Smallest relative change of rate or efficiency by a cut that is tuned."""
MAX_SWEEPS = 6
MEMBERS_PER_CUT = 2
LEAST_MEMBERS = 16
PRICES = tuple(np.geomspace(5.0, 0.02, 14).tolist())
"""Weighted efficiency that the whole cap costs, from tight to loose cuts."""
_PRICED_SWEEPS = 3
_BEST = 3
"""Points that are swept at the cap."""
_RATE_PENALTY = 20.0
_LOSS_PENALTY = 5.0
_CHANGED = 0.3
"""Part of the cuts that differ from the configuration in a member of the first generation."""
Cost = Callable[[Measured], float]


@dataclass(frozen=True, slots=True)
class Goal:
    """What the cuts shall reach.

    cap: largest rate of all lines, Hz. weights: f64[signals], their sum is 1. reference: efficiencies of the shipped
    cuts, f64[signals]. max_loss: the part of its efficiency that a signal may lose without a penalty.
    """

    cap: float
    weights: NDArray[np.float64]
    reference: NDArray[np.float64]
    max_loss: float

    def gain(self, measured: Measured) -> float:
        """The weighted efficiency of the signals."""
        return float(self.weights @ measured.efficiencies)

    def cost(self, measured: Measured) -> float:
        """The number to be minimised. A rate above the cap costs more than any efficiency that it can gain."""
        return self._loss(measured) + _RATE_PENALTY * max(measured.rate / self.cap - 1.0, 0.0)

    def cost_at(self, price: float) -> Cost:
        """The number to be minimised with a price on the rate."""
        return lambda measured: self._loss(measured) + price * measured.rate / self.cap

    def _loss(self, measured: Measured) -> float:
        """The weighted efficiency with the opposite sign, and penalties for lost signals."""
        allowed = (1.0 - self.max_loss) * self.reference
        lost = np.maximum(allowed - measured.efficiencies, 0.0).sum()
        return -self.gain(measured) + _LOSS_PENALTY * float(lost)


@dataclass(slots=True)
class Search:
    """Searches on one menu. places: the places of the cuts that are tuned; the others keep their values.

    progress: is called with the number of evaluations.
    """

    menu: TunableMenu
    scales: Scales
    places: tuple[int, ...]
    progress: Callable[[int], None] = lambda _: None
    evaluations: int = field(default=0)

    def measured(self, point: Values) -> Measured:
        """Rate and efficiencies of a point on the events of the search."""
        self.evaluations += 1
        self.progress(1)
        return self.scales.measured(self.menu.accepted(point))

    def evolved(self, goal: Goal, evaluations: int, seed: int) -> Values:
        """The best point of an evolution from the configuration, with about this number of evaluations."""
        # Local import: scipy is an extra, and its import costs 0.3 s.
        from scipy.optimize import differential_evolution

        menu, grids = self.menu, [self.menu.cuts[place].levels(LEVELS) for place in self.places]
        start = [grid.index(menu.cuts[place].base) for place, grid in zip(self.places, grids, strict=True)]
        members = max(LEAST_MEMBERS, MEMBERS_PER_CUT * len(grids))
        rng = np.random.default_rng(seed)
        first = np.tile(np.array(start, np.float64), (members, 1))
        for row in first[1:]:
            changed = np.flatnonzero(rng.random(len(grids)) < _CHANGED)
            for i in changed:
                row[i] = rng.integers(len(grids[i]))

        def cost(found: NDArray[np.float64]) -> float:
            return goal.cost(self.measured(self._point(grids, found)))

        best = differential_evolution(
            cost,
            [(0, max(len(grid) - 1, 1e-9)) for grid in grids],
            integrality=np.ones(len(grids), np.bool_),
            init=first,
            maxiter=max(evaluations // members - 1, 1),
            mutation=(0.4, 0.9),
            recombination=0.7,
            tol=0.0,
            polish=False,
            rng=rng,
        )
        point = self._point(grids, best.x)
        return min(point, menu.base, key=lambda each: goal.cost(self.measured(each)))

    def priced(self, goal: Goal) -> list[Values]:
        """The best points for each of PRICES, each swept from the one before."""
        point, found = self.menu.base, []
        for price in PRICES:
            point = self._sweeps(goal.cost_at(price), point, _PRICED_SWEEPS, fine=False)
            found.append(point)
        return found

    def best(self, goal: Goal, points: Sequence[Values]) -> Values:
        """The best point that sweeps at the cap reach from the best of some points."""
        ordered = sorted(dict.fromkeys(points), key=lambda point: goal.cost(self.measured(point)))
        swept = [self.simplified(goal, self._swept(goal, point)) for point in ordered[:_BEST]]
        return min((*ordered[:1], *swept), key=lambda point: goal.cost(self.measured(point)))

    def _swept(self, goal: Goal, point: Values) -> Values:
        point = self._sweeps(goal.cost, point, MAX_SWEEPS, fine=False)
        return self._sweeps(goal.cost, point, MAX_SWEEPS, fine=True)

    def _sweeps(self, cost: Cost, point: Values, most: int, *, fine: bool) -> Values:
        """The point after sweeps over single cuts, until none improves. fine: on a finer grid around each value."""
        for _ in range(most):
            before = point
            for place in self.places:
                point = self._best_value(cost, point, place, fine)
            if point == before:
                break
        return point

    def simplified(self, goal: Goal, point: Values) -> Values:
        """The point with each cut that gains nothing back at its value of the configuration."""
        for place in self.places:
            plain = (*point[:place], self.menu.base[place], *point[place + 1 :])
            if plain != point and goal.cost(self.measured(plain)) <= goal.cost(self.measured(point)):
                point = plain
        return point

    def _best_value(self, cost: Cost, point: Values, place: int, fine: bool) -> Values:
        menu, cut = self.menu, self.menu.cuts[place]
        step = (cut.high - cut.low) / (LEVELS - 1)
        low, high = (point[place] - step, point[place] + step) if fine else (cut.low, cut.high)
        line = menu.line_of_cut[place]
        others = menu.accepted_without(point, line)
        best, lowest = point, np.inf
        # The present value first: another one replaces it only if it is better.
        for value in dict.fromkeys((point[place], *cut.levels(LEVELS, low, high))):
            tried = (*point[:place], value, *point[place + 1 :])
            decided = menu.line_decisions(line, menu.values_of_line(tried, line))
            found = cost(self.scales.measured(others | decided))
            if found < lowest:
                best, lowest = tried, found
        self.evaluations += 1
        self.progress(1)
        return best

    def _point(self, grids: Sequence[Values], found: NDArray[np.float64]) -> Values:
        point = list(self.menu.base)
        for place, grid, level in zip(self.places, grids, np.rint(found).astype(int).tolist(), strict=True):
            point[place] = grid[min(level, len(grid) - 1)]
        return tuple(point)


def strongest_cuts(menu: TunableMenu, scales: Scales, most: int) -> tuple[int, ...]:
    """The places of the cuts whose ends change rate or efficiencies most, in the order of the menu.

    Raises TuningError if no cut changes anything.
    """
    base = scales.measured(menu.accepted(menu.base))
    effects = []
    for place, cut in enumerate(menu.cuts):
        line = menu.line_of_cut[place]
        others = menu.accepted_without(menu.base, line)
        effect = 0.0
        for value in (cut.low, cut.high):
            tried = (*menu.base[:place], value, *menu.base[place + 1 :])
            at = scales.measured(others | menu.line_decisions(line, menu.values_of_line(tried, line)))
            moved = np.abs(at.efficiencies - base.efficiencies).sum()
            effect = max(effect, abs(at.rate - base.rate) / max(base.rate, 1e-9) + float(moved))
        effects.append(effect)
    order = sorted(range(len(effects)), key=lambda place: (-effects[place], place))
    found = tuple(sorted(place for place in order[:most] if effects[place] > LEAST_EFFECT))
    if not found:
        raise TuningError("no cut changes a decision on these events: give wider ranges with --tune LINE.CUT=LOW:HIGH")
    return found


def reachable_rates(menu: TunableMenu, scales: Scales, places: Sequence[int]) -> tuple[Values, Values]:
    """The points of the tightest and the loosest cuts: of each, the end at which its line accepts less, or more."""
    points = []
    for sign in (1, -1):
        point = menu.base
        for place in places:
            line = menu.line_of_cut[place]

            def rate(tried: Values, line: int = line) -> float:
                values = menu.values_of_line(tried, line)
                return scales.measured(menu.line_decisions(line, values)).rate

            ends = [
                (*point[:place], value, *point[place + 1 :]) for value in (menu.cuts[place].low, menu.cuts[place].high)
            ]
            point = min((point, *ends), key=lambda tried: sign * rate(tried))
        points.append(point)
    return points[0], points[1]
