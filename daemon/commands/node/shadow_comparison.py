"""Compares the decisions of a productive node and of its shadow, event by event (no I/O)."""

from collections import OrderedDict
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field

import numpy as np
from numpy.typing import NDArray

from hltnode.client import MepDecision

# Decisions that wait for those of the other node; more are counted as unmatched.
MAX_WAITING = 20_000

LineNames = Callable[[int], tuple[str, ...] | None]
"""Names of the lines of a TCK, in the order of their numbers; None if they are unknown."""


def no_names(tck: int) -> None:
    """All lines are compared by their numbers."""


@dataclass
class LineCounts:
    """Events of one line, by the two decisions."""

    both: int = 0
    only_productive: int = 0
    only_shadow: int = 0


@dataclass(frozen=True)
class LinePairs:
    """Which lines of two trigger configurations are compared."""

    names: tuple[str, ...]
    productive: tuple[int, ...]
    """Numbers of the compared lines in the productive node."""
    shadow: tuple[int, ...]
    only_productive: tuple[str, ...]
    """Lines that the shadow does not have."""
    only_shadow: tuple[str, ...]

    @classmethod
    def of(cls, productive: tuple[str, ...], shadow: tuple[str, ...]) -> "LinePairs":
        """Lines of the same name."""
        place = {name: i for i, name in enumerate(shadow)}
        common = [name for name in productive if name in place]
        return cls(
            tuple(common),
            tuple(productive.index(name) for name in common),
            tuple(place[name] for name in common),
            tuple(name for name in productive if name not in place),
            tuple(name for name in shadow if name not in productive),
        )


@dataclass
class Comparison:
    """The decisions of two nodes, event by event.

    Lines of the same name are compared if the configurations of both nodes are known, otherwise line i of the one with
    line i of the other.
    """

    names_of: LineNames = no_names
    meps: int = 0
    events: int = 0
    differing_events: int = 0
    """Events on which a line that both nodes have, or the acceptance, differs."""
    accepted: LineCounts = field(default_factory=LineCounts)
    lines: dict[str, LineCounts] = field(default_factory=dict)
    """By name, or by number, such as `line 3`, if the name is unknown."""
    only_productive: tuple[str, ...] = ()
    """Lines that the shadow does not have, of the newest MEP."""
    only_shadow: tuple[str, ...] = ()
    by_number: bool = False
    """The configuration of a node was unknown for a MEP, so lines were compared by their numbers."""
    unmatched: tuple[int, int] = (0, 0)
    """MEPs that only the productive node, or only the shadow, has decided."""
    _pairs: dict[tuple[int, int, int, int], LinePairs] = field(default_factory=dict, repr=False)

    def add(self, productive: MepDecision, shadow: MepDecision) -> None:
        """Count the events of a MEP that both have decided. Raises ValueError for unequal numbers of events."""
        if productive.n_events != shadow.n_events:
            raise ValueError(
                f"run {productive.run}, MEP {productive.mep}: {productive.n_events} events of {productive.node}, "
                f"{shadow.n_events} of {shadow.node}"
            )
        pairs = self._pairs_of(productive, shadow)
        self.only_productive, self.only_shadow = pairs.only_productive, pairs.only_shadow
        ours = productive.fired()[:, list(pairs.productive)]
        theirs = shadow.fired()[:, list(pairs.shadow)]
        for name, first, second in zip(pairs.names, ours.T, theirs.T, strict=True):
            _count(self.lines.setdefault(name, LineCounts()), first, second)
        accepted = productive.accepted_events(), shadow.accepted_events()
        _count(self.accepted, *accepted)
        self.meps += 1
        self.events += productive.n_events
        self.differing_events += int(((ours != theirs).any(axis=1) | (accepted[0] != accepted[1])).sum())

    def _pairs_of(self, productive: MepDecision, shadow: MepDecision) -> LinePairs:
        key = productive.tck, productive.n_lines, shadow.tck, shadow.n_lines
        if key not in self._pairs:
            names = [self._known_names(each) for each in (productive, shadow)]
            if None in names:
                self.by_number = True
                numbers = tuple(f"line {i}" for i in range(max(productive.n_lines, shadow.n_lines)))
                names = [numbers[: productive.n_lines], numbers[: shadow.n_lines]]
            self._pairs[key] = LinePairs.of(names[0] or (), names[1] or ())
        return self._pairs[key]

    def _known_names(self, decision: MepDecision) -> tuple[str, ...] | None:
        names = self.names_of(decision.tck)
        return names if names is not None and len(names) == decision.n_lines else None


def _count(counts: LineCounts, productive: NDArray[np.bool_], shadow: NDArray[np.bool_]) -> None:
    counts.both += int((productive & shadow).sum())
    counts.only_productive += int((productive & ~shadow).sum())
    counts.only_shadow += int((shadow & ~productive).sum())


class DecisionPairs:
    """Finds the two decisions on each MEP, which come in any order (no I/O).

    Args:
        names_of: names of the lines of a TCK.
        most: decisions of one node that wait; beyond it the oldest is given up.
    """

    def __init__(self, names_of: LineNames = no_names, most: int = MAX_WAITING) -> None:
        self._most = most
        self._waiting: tuple[OrderedDict[tuple[int, int], MepDecision], ...] = (OrderedDict(), OrderedDict())
        self.given_up = [0, 0]
        self.comparison = Comparison(names_of)

    def take(self, decision: MepDecision, *, is_shadow: bool) -> None:
        """Take a decision of one node, and compare it if that of the other is there. Raises ValueError."""
        key = decision.run, decision.mep
        other = self._waiting[not is_shadow].pop(key, None)
        if other is None:
            own = self._waiting[is_shadow]
            own[key] = decision
            if len(own) > self._most:
                own.popitem(last=False)
                self.given_up[is_shadow] += 1
        elif is_shadow:
            self.comparison.add(other, decision)
        else:
            self.comparison.add(decision, other)

    def end(self) -> Comparison:
        """The comparison of all decisions so far; those that still wait are unmatched."""
        productive, shadow = (n + len(waiting) for n, waiting in zip(self.given_up, self._waiting, strict=True))
        self.comparison.unmatched = productive, shadow
        return self.comparison


def as_json(found: Comparison) -> Mapping[str, object]:
    """What `hltnode shadow --json` writes."""

    def counts(line: LineCounts) -> dict[str, int]:
        return {"both": line.both, "only_productive": line.only_productive, "only_shadow": line.only_shadow}

    return {
        "meps": found.meps,
        "events": found.events,
        "differing_events": found.differing_events,
        "accepted": counts(found.accepted),
        "lines": {name: counts(line) for name, line in found.lines.items()},
        "compared_by_number": found.by_number,
        "lines_only_productive": list(found.only_productive),
        "lines_only_shadow": list(found.only_shadow),
        "unmatched_meps": {"productive": found.unmatched[0], "shadow": found.unmatched[1]},
    }
