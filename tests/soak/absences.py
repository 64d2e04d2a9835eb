"""Fragments that could not arrive in time: from stopped or killed feeders, or damaged on purpose."""

import json
from collections import defaultdict
from collections.abc import Iterable
from dataclasses import dataclass, field
from math import inf
from pathlib import Path
from typing import NamedTuple

from tests.soak.faults import ABSENCES, RESTARTS, Kind, Standing
from tests.soak.timeline import Span, Timeline

# A killed or stopped feeder is back when it sends: it reconnects (heartbeats: 3 s), replaces its former session (silent
# for the node after 5 s), and repeats its hello every second. A longer delay is a defect. The start of its process is
# not included: it takes seconds on a busy machine.
RETURN_SECONDS = 10.0
# The feeder that assigns MEPs to nodes.
SUPERVISOR = 1
# Times of two processes differ by less than this.
CLOCK_SECONDS = 0.01
# Its first fragments are late, because the other feeders sent theirs before; after this time it has caught up.
CATCH_UP_SECONDS = 1.0
# The nodes wait this long for a connected feeder (builder.feeder_timeout_ms), minus the difference of the clocks. While
# the supervisor is away, the other feeders wait for assignments; no fragment is lost before this time.
AWAITED_SECONDS = 9.5


class Absence(NamedTuple):
    """A time span in which a feeder may be missing at a node."""

    begin: float
    end: float
    kind: Kind


@dataclass(slots=True)
class FeederRecords:
    """Records of the feeder processes, see `feeder_process`."""

    faults: dict[tuple[int, int, int], str] = field(default_factory=dict)
    """By run, MEP and source: the fault of the fragment."""
    silences: list[tuple[int, int, float, float]] = field(default_factory=list)
    """Feeder, index of the node, start and end."""
    ready: dict[tuple[int, int], list[float]] = field(default_factory=lambda: defaultdict(list))
    """By feeder and index of the node: the times at which a process started to connect."""

    sent: dict[tuple[int, int, int], list[tuple[int, float]]] = field(default_factory=lambda: defaultdict(list))
    """By run, MEP and source: the index of the node and the time of each fragment, to analyse a failure."""

    def read(self, feeder: int, log: Path) -> None:
        """Add the records of one process, without a last line that is incomplete because of a kill."""
        if not log.exists():
            return
        for row in log.read_text().splitlines(keepends=True):
            if not row.endswith("\n"):
                continue
            record = json.loads(row)
            if "sent" in record:
                fragment = record["run"], record["mep"], record["source"]
                self.sent[fragment].append((record["node"], record["sent"]))
            elif "fault" in record:
                self.faults[record["run"], record["mep"], record["source"]] = record["fault"]
            elif "ready" in record:
                self.ready[feeder, record["node"]].append(record["ready"])
            else:
                self.silences.append((feeder, record["node"], record["begin"], record["end"]))


def _merged(absences: list[Absence]) -> list[Absence]:
    """Merge overlapping spans; the result has the kind of the first."""
    merged: list[Absence] = []
    for each in sorted(absences):
        if merged and each.begin <= merged[-1].end:
            merged[-1] = merged[-1]._replace(end=max(merged[-1].end, each.end))
        else:
            merged.append(each)
    return merged


class Absences:
    """Finds the fault that explains the missing sources of a MEP.

    Args:
        feeder_of: the feeder of each source, from 1.
        nodes: names of the nodes, in the order of the feeders' configuration.
    """

    def __init__(
        self, timeline: Timeline, records: FeederRecords, feeder_of: dict[int, int], nodes: tuple[str, ...]
    ) -> None:
        self._records = records
        self._feeder_of = feeder_of
        self._nodes = nodes
        self._of: dict[tuple[int, str], list[Absence]] = {}
        for feeder in set(feeder_of.values()):
            spans = timeline.of_target(f"feeder{feeder}", ABSENCES)
            for index, node in enumerate(nodes):
                self._of[feeder, node] = [
                    Absence(span.begin, self._return(feeder, index, span) + CATCH_UP_SECONDS, span.kind)
                    for span in spans
                ]
        for node in nodes:
            outages = [each for each in _merged(self._of[SUPERVISOR, node]) if each.end - each.begin >= AWAITED_SECONDS]
            for feeder in set(feeder_of.values()) - {SUPERVISOR}:
                self._of[feeder, node] += outages

    def _return(self, feeder: int, node: int, span: Span) -> float:
        """The time at which a feeder sent its first fragment to a node after a fault; one silence may follow
        another."""
        runs = span.end
        if span.kind in RESTARTS:
            # The process that was started then, or a later one if that process never connected.
            runs = min((t for t in self._records.ready[feeder, node] if t > span.end), default=inf)
        back = runs
        for _, _, begin, until in sorted(s for s in self._records.silences if s[:2] == (feeder, node)):
            if begin <= back + CLOCK_SECONDS < until:
                back = until
        return min(back, runs + RETURN_SECONDS)

    def when_sent(self, run: int, mep: int, since: float) -> str:
        """Times and nodes of the sent fragments of a MEP, relative to a time."""
        sent = {
            source: [f"{self._nodes[node]} {time - since:+.2f}" for node, time in self._records.sent[run, mep, source]]
            for source in sorted(self._feeder_of)
        }
        return "; ".join(f"{source}: {', '.join(times) or 'never'}" for source, times in sent.items())

    def first_sent(self, node: str, run: int, mep: int, since: float) -> float | None:
        """Time of the first fragment of a MEP to a node, from a given time on."""
        index = self._nodes.index(node)
        sent = (self._records.sent.get((run, mep, source), []) for source in self._feeder_of)
        return min((time for of in sent for to, time in of if to == index and time >= since), default=None)

    def explain(
        self, node: str, run: int, mep: int, missing: Iterable[int], begin: float, end: float
    ) -> Kind | Standing | None:
        """The fault that explains why a MEP, built from `begin` to `end`, lacks all of these sources; or None."""
        kinds: set[Kind | Standing] = set()
        for source in missing:
            absences = self._of[self._feeder_of[source], node]
            kind = next((each.kind for each in absences if each.begin <= end and each.end >= begin), None)
            if kind is not None:
                kinds.add(kind)
            elif (run, mep, source) in self._records.faults:
                kinds.add(Standing.WIRE)
            else:
                return None
        # An absent feeder explains more sources than a damaged fragment.
        return next((kind for kind in kinds if kind is not Standing.WIRE), Standing.WIRE)
