"""hltnode shadow: compares the decisions of a shadow node with those of the productive node."""

import time
from collections import OrderedDict
from dataclasses import dataclass, field
from typing import Annotated

import numpy as np
import typer
import zmq
from numpy.typing import NDArray

from hltnode.client import DecisionSubscriber, MepDecision
from hltnode.client.keys import load_client_keys
from hltnode.daemon.commands.common import (
    JsonOption,
    KeyFileOption,
    ServerKeyOption,
    console,
    counted,
    require_writable,
    user_errors,
    write_json,
)
from hltnode.daemon.commands.terminal import echo
from hltnode.daemon.common.endpoints import check_option
from hltnode.daemon.common.reachability import require_node

# Decisions that wait for those of the other node; more are counted as unmatched.
MAX_WAITING = 20_000
POLL_S = 0.2


@dataclass
class LineCounts:
    """Events of one line, by the two decisions."""

    both: int = 0
    only_productive: int = 0
    only_shadow: int = 0


@dataclass
class Comparison:
    """The decisions of two nodes, event by event. Line i of one node is compared with line i of the other."""

    meps: int = 0
    events: int = 0
    differing_events: int = 0
    """Events on which a line that both nodes have, or the acceptance, differs."""
    accepted: LineCounts = field(default_factory=LineCounts)
    lines: list[LineCounts] = field(default_factory=list)
    other_lines: tuple[int, int] = (0, 0)
    """Numbers of lines of the two nodes, if they differ."""
    unmatched: tuple[int, int] = (0, 0)
    """MEPs that only the productive node, or only the shadow, has decided."""

    def add(self, productive: MepDecision, shadow: MepDecision) -> None:
        """Count the events of a MEP that both have decided."""
        if productive.n_events != shadow.n_events:
            raise ValueError(
                f"run {productive.run}, MEP {productive.mep}: {productive.n_events} events of {productive.node}, "
                f"{shadow.n_events} of {shadow.node}"
            )
        n_lines = min(productive.n_lines, shadow.n_lines)
        if productive.n_lines != shadow.n_lines:
            self.other_lines = productive.n_lines, shadow.n_lines
        ours, theirs = productive.fired()[:, :n_lines], shadow.fired()[:, :n_lines]
        self.lines += [LineCounts() for _ in range(n_lines - len(self.lines))]
        for counts, first, second in zip(self.lines, ours.T, theirs.T, strict=False):
            _count(counts, first, second)
        accepted = productive.accepted_events(), shadow.accepted_events()
        _count(self.accepted, *accepted)
        self.meps += 1
        self.events += productive.n_events
        self.differing_events += int(((ours != theirs).any(axis=1) | (accepted[0] != accepted[1])).sum())


def _count(counts: LineCounts, productive: NDArray[np.bool_], shadow: NDArray[np.bool_]) -> None:
    counts.both += int((productive & shadow).sum())
    counts.only_productive += int((productive & ~shadow).sum())
    counts.only_shadow += int((shadow & ~productive).sum())


class DecisionPairs:
    """Finds the two decisions on each MEP, which come in any order (no I/O).

    Args:
        most: decisions of one node that wait; beyond it the oldest is given up.
    """

    def __init__(self, most: int = MAX_WAITING) -> None:
        self._most = most
        self._waiting: tuple[OrderedDict[tuple[int, int], MepDecision], ...] = (OrderedDict(), OrderedDict())
        self.given_up = [0, 0]
        self.comparison = Comparison()

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


def shadow(
    productive: Annotated[str, typer.Argument(metavar="PRODUCTIVE", help="Decision endpoint of the productive node.")],
    of_shadow: Annotated[str, typer.Argument(metavar="SHADOW", help="Decision endpoint of the shadow node.")],
    meps: Annotated[int | None, typer.Option("--meps", min=1, help="End after this number of compared MEPs.")] = None,
    seconds: Annotated[float, typer.Option("--seconds", min=0.1, help="End after this time.")] = 60.0,
    server_key: ServerKeyOption = None,
    key_file: KeyFileOption = None,
    json: JsonOption = None,
) -> None:
    """Compare the decisions of a shadow node with those of the productive node, line by line.

    Line i of the one is compared with line i of the other, so put lines that only the shadow has behind the common
    ones. MEPs that the shadow did not get are not compared, and counted. The exit code is 0 also if decisions differ.

    Example: hltnode shadow tcp://127.0.0.1:5557 tcp://127.0.0.1:5567 --seconds 60
    """
    with user_errors():
        require_writable(json)
        keys = load_client_keys(server_key, key_file)
        for option, endpoint in (("PRODUCTIVE", productive), ("SHADOW", of_shadow)):
            check_option(option, endpoint)
        require_node(zmq.SUB, [productive, of_shadow], keys)
        pairs = DecisionPairs()
        with (
            DecisionSubscriber(productive, keys=keys) as first,
            DecisionSubscriber(of_shadow, keys=keys, shadow=True) as second,
        ):
            end = time.monotonic() + seconds
            subscribers = ((first, False), (second, True))
            while time.monotonic() < end and (meps is None or pairs.comparison.meps < meps):
                if not _take_waiting(pairs, subscribers):
                    time.sleep(POLL_S / 10)
            missed = first.missed, second.missed
        found = pairs.end()
        write_json(json, {**_as_json(found), "missed_messages": list(missed)})
    _print(found)


def _take_waiting(pairs: DecisionPairs, subscribers: tuple[tuple[DecisionSubscriber, bool], ...]) -> bool:
    """Take the waiting decisions of each node, at most some hundred; False if there were none."""
    took = False
    for subscriber, is_shadow in subscribers:
        for _ in range(500):
            try:
                decision = subscriber.receive(0.0)
            except TimeoutError:
                break
            pairs.take(decision, is_shadow=is_shadow)
            took = True
    return took


def _as_json(found: Comparison) -> dict[str, object]:
    def counts(line: LineCounts) -> dict[str, int]:
        return {"both": line.both, "only_productive": line.only_productive, "only_shadow": line.only_shadow}

    return {
        "meps": found.meps,
        "events": found.events,
        "differing_events": found.differing_events,
        "accepted": counts(found.accepted),
        "lines": [counts(line) for line in found.lines],
        "unmatched_meps": {"productive": found.unmatched[0], "shadow": found.unmatched[1]},
    }


def _print(found: Comparison) -> None:
    echo(f"{counted(found.meps, 'MEP')}, {counted(found.events, 'event')}: {found.differing_events} differ")
    rows = [("accepted", found.accepted), *((f"line {i}", line) for i, line in enumerate(found.lines))]
    for name, line in rows:
        if line.both or line.only_productive or line.only_shadow:
            echo(f"  {name}: {line.both} both, {line.only_productive} only productive, {line.only_shadow} only shadow")
    if any(found.other_lines):
        console.print(
            f"the nodes have {found.other_lines[0]} and {found.other_lines[1]} lines: only the first are compared",
            highlight=False,
        )
    if any(found.unmatched):
        echo(f"not compared: {found.unmatched[0]} MEPs of the productive node, {found.unmatched[1]} of the shadow")
