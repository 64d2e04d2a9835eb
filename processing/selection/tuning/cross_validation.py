"""How much more tuned cuts accept of events that their search has not seen, and the cap that corrects for it.

A search under a cap prefers cuts whose rate fluctuates downwards on its events (M. Stone, J. R. Stat. Soc. B 36 (1974)
111). So the events of the search are divided into parts. Each part is decided by the cuts that a search on the other
parts finds. These decisions are those of unseen events; their rate divided by that of the searched events is the
*optimism*. The search on all parts then keeps the cap divided by it.
"""

from collections.abc import Callable
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from hltnode.processing.selection.evaluation.lines import Bools

FOLDS = 5
"""Parts of the events. Each costs a search in each round."""
ROUNDS = 2
"""Divisions into parts. The second one measures at nearly the cap of the final search."""
Find = Callable[[Bools, float], Bools]
"""The decisions bool[events] of the cuts that a search finds on some events, bool[events], for a multiple of the cap.
"""


@dataclass(frozen=True, slots=True)
class Correction:
    """What cross-validation says of a search on all events.

    optimism: rate on unseen events / rate on events of the search. error: of the optimism, from the difference of the
    rounds. factor: cap of the search / cap. unseen: bool[events], the decisions of the last round; that of each event
    is made without the event.
    """

    optimism: float
    error: float
    factor: float
    unseen: Bools


@dataclass(frozen=True, slots=True, kw_only=True)
class Counted:
    """What a rate is made of.

    weights: f64[events], 0 for events that have no part in the rate. per: bool[events], the events whose weights
    divide it: all, or those that the shipped cuts accept. Their fluctuations cancel in the optimism. cap: in these
    units.
    """

    weights: NDArray[np.float64]
    per: Bools
    cap: float

    def rate(self, accepted: Bools, of: Bools) -> float:
        """The weights of accepted events / those that divide them, of some of the events. nan without the latter."""
        total = float(self.weights[self.per & of].sum())
        return float(self.weights[accepted & of].sum()) / total if total else np.nan


def corrected_search(find: Find, counted: Counted, sample: NDArray[np.int64], searched: Bools, seed: int) -> Correction:
    """The optimism of a search, and the factor for its cap. sample: i64[events], each is divided into parts alone.

    The optimism of n events exceeds 1 by a part that falls as 1 / n, so the searches of the parts exaggerate it by
    FOLDS / (FOLDS - 1). It is at least 1: a search is not pessimistic, only a measurement can be. Without an accepted
    event it is 1. Searches that use only a part of their cap need less of a correction.
    """
    measured: list[float] = []
    used: list[float] = []
    correction = Correction(1.0, 0.0, 1.0, np.zeros(len(sample), np.bool_))
    for number in range(ROUNDS):
        part = _parts(sample, searched, np.random.default_rng((seed, number)))
        unseen, seen = np.zeros(len(sample), np.bool_), []
        for left_out in (part == i for i in range(FOLDS)):
            if left_out.any():
                rest = searched & ~left_out
                accepted = find(rest, correction.factor)
                unseen |= accepted & left_out
                seen.append(counted.rate(accepted, rest))
        known = [rate for rate in seen if rate > 0]
        mean = float(np.mean(known)) if known else np.nan
        excess = counted.rate(unseen, searched) / mean - 1.0 if known else 0.0
        measured.append(excess * (FOLDS - 1) / FOLDS)
        used.append(mean / (correction.factor * counted.cap) if known else 1.0)
        optimism = 1.0 + max(float(np.mean(measured)), 0.0)
        factor = 1.0 / max(optimism * float(np.mean(used)), 1.0)
        error = float(np.std(measured, ddof=1)) / np.sqrt(len(measured)) if number else 0.0
        correction = Correction(optimism, float(error), factor, unseen)
    return correction


def _parts(sample: NDArray[np.int64], searched: Bools, rng: np.random.Generator) -> NDArray[np.int64]:
    """The part of each event, i64[events], -1 for those that no search leaves out.

    These are the events outside of the search, and the only event of a sample: no search can do without it.
    """
    part = np.full(len(sample), -1)
    for number in range(int(sample.max()) + 1):
        own = rng.permutation(np.flatnonzero(searched & (sample == number)))
        if len(own) > 1:
            part[own] = np.arange(len(own)) % FOLDS
    return part
