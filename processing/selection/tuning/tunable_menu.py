"""Decisions of all lines as a function of the tuned cuts, and the rates and efficiencies that follow."""

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from hltnode.processing.selection.evaluation.lines import Bools
from hltnode.processing.selection.tuning.cuts import TunedCut
from hltnode.processing.selection.tuning.errors import TuningError
from hltnode.processing.selection.tuning.stored_events import StoredEvents
from hltnode.processing.selection.tuning.tunable_line import TunableLine, Values

MAX_KEPT_BYTES = 8 << 20
"""Decisions kept for each line, one bit for each event: those of 4,096 choices of cuts for 16,000 events. As much again
for its candidates, one bit for each and each condition with a value of its cut."""
LEAST_KEPT = 64
"""Choices of cuts that are kept for any number of events or candidates: a sweep tries 26 values of a cut."""


@dataclass(frozen=True, slots=True)
class Measured:
    """The rate of all lines in Hz, and the efficiency of each signal, f64[signals]."""

    rate: float
    efficiencies: NDArray[np.float64]


class TunableMenu:
    """All lines of a configuration on the events of a minimum bias sample and of signal samples.

    events: sample 0 is minimum bias, the others are signals. rate: of the events for which minimum bias stands, Hz.
    A *point* is a value of each of `cuts`.

    Raises TuningError if a stored line decides differently from the sequence, which would be an error of this software.
    """

    def __init__(self, lines: Sequence[TunableLine], events: StoredEvents, rate: float) -> None:
        self.lines = tuple(lines)
        self.events = events
        self.event_rate = rate
        self.cuts: tuple[TunedCut, ...] = tuple(cut for line in lines for cut in line.cuts)
        ends = np.cumsum([len(line.cuts) for line in lines]).tolist()
        self._slices = [slice(end - len(line.cuts), end) for line, end in zip(lines, ends, strict=True)]
        self.line_of_cut = [i for i, line in enumerate(lines) for _ in line.cuts]
        untuned = np.delete(events.fired, [line.place for line in lines], axis=1)
        self._untuned: Bools = np.asarray(untuned.any(axis=1))
        self._kept: list[dict[Values, NDArray[np.uint8]]] = [{} for _ in lines]
        self._most_kept = _most_kept(events.n_events)
        self._meeting: list[dict[tuple[int, Values], NDArray[np.uint8]]] = [{} for _ in lines]
        self._cuts_of_conditions = [line.cuts_of_conditions for line in lines]
        for i, line in enumerate(self.lines):
            differing = np.count_nonzero(self.line_decisions(i, line.base) != events.fired[:, line.place])
            if differing:
                raise TuningError(
                    f"line {line.line.name}: its stored candidates decide differently from the sequence in {differing} "
                    "events; please report it"
                )

    @property
    def base(self) -> Values:
        """The point of the configuration."""
        return tuple(cut.base for cut in self.cuts)

    @property
    def n_signals(self) -> int:
        """Number of signal samples."""
        return len(self.events.kinds) - 1

    def line_decisions(self, place: int, values: Values) -> Bools:
        """bool[events]: decisions of one of `lines`, scalers included."""
        kept = self._kept[place]
        if values not in kept:
            if len(kept) >= self._most_kept:
                kept.clear()
            stored = self.events.lines[place]
            decided = np.zeros(self.events.n_events, np.bool_)
            decided[stored.event[self._selected(place, values)]] = True
            kept[values] = np.packbits(decided & stored.passes)
        return np.unpackbits(kept[values], count=self.events.n_events).view(np.bool_)

    def _selected(self, place: int, values: Values) -> Bools:
        """bool[candidates]: those that one of `lines` selects. A condition is computed once for a value of its cuts."""
        line, stored, kept = self.lines[place], self.events.lines[place], self._meeting[place]
        n = len(stored.event)
        selected = np.packbits(np.ones(n, np.bool_))
        for condition, cuts in enumerate(self._cuts_of_conditions[place]):
            key = condition, tuple(values[i] for i in cuts)
            if key not in kept:
                if len(kept) >= _most_kept(n):
                    kept.clear()
                kept[key] = np.packbits(line.meeting(stored.values, condition, values))
            selected &= kept[key]
        return np.unpackbits(selected, count=n).view(np.bool_)

    def accepted(self, point: Values) -> Bools:
        """bool[events]: whether any line accepts."""
        return self.accepted_without(point, None)

    def accepted_without(self, point: Values, left_out: int | None) -> Bools:
        """The same without one of `lines`."""
        found = self._untuned.copy()
        for i, part in enumerate(self._slices):
            if i != left_out:
                found |= self.line_decisions(i, point[part])
        return found

    def values_of_line(self, point: Values, place: int) -> Values:
        """The values of the cuts of one of `lines`."""
        return point[self._slices[place]]

    def decisions(self, point: Values) -> Bools:
        """bool[events, lines]: decisions of all lines of the configuration."""
        found = self.events.fired.copy()
        for i, (line, part) in enumerate(zip(self.lines, self._slices, strict=True)):
            found[:, line.place] = self.line_decisions(i, point[part])
        return found


def _most_kept(n: int) -> int:
    """Decisions on n events or candidates that are kept."""
    return max(LEAST_KEPT, 8 * MAX_KEPT_BYTES // max(n, 1))


@dataclass(frozen=True, slots=True)
class Scales:
    """Factors that turn decisions of some events into rates and efficiencies: f64[events, samples].

    The column of minimum bias sums to the rate of events in Hz, that of a signal to 1.
    """

    factors: NDArray[np.float64]

    @classmethod
    def of(cls, menu: TunableMenu, chosen: Bools) -> "Scales":
        """The factors for some of the events, bool[events]. Raises TuningError for a sample without any of them."""
        events = menu.events
        factors = np.zeros((events.n_events, len(events.kinds)))
        for sample in range(len(events.kinds)):
            weights = np.where(chosen & (events.sample == sample), events.weights, 0.0)
            total = float(weights.sum())
            if not total > 0:
                name, n = f"signal {sample}" if sample else "minimum bias", np.count_nonzero(events.sample == sample)
                raise TuningError(f"{name} has {n} events, too few to search on some and to hold out others")
            factors[:, sample] = weights / total * (menu.event_rate if sample == 0 else 1.0)
        return cls(factors)

    def measured(self, accepted: Bools) -> Measured:
        """Rate and efficiencies of some decisions, bool[events]."""
        sums = accepted.astype(np.float64) @ self.factors
        return Measured(float(sums[0]), sums[1:])


def parts_of(events: StoredEvents, holdout: float, seed: int) -> tuple[Bools, Bools]:
    """The events that cuts are tuned on, and those held out: bool[events] each. Chosen by the seed in each sample."""
    held_out = np.zeros(events.n_events, np.bool_)
    rng = np.random.default_rng(seed)
    for sample in range(len(events.kinds)):
        own = np.flatnonzero(events.sample == sample)
        held_out[rng.permutation(own)[: round(holdout * len(own))]] = True
    return ~held_out, held_out
