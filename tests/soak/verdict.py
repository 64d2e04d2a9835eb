"""The verdict of a soak: each fed event is in the files once, complete or incomplete for a known reason.

Pure functions of files and records, so that tests can show that each kind of loss is found.
"""

from collections import Counter, defaultdict
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from itertools import islice
from pathlib import Path
from typing import NamedTuple

from hltnode.protocol.errors import ProtocolError
from tests.soak.absences import Absences
from tests.soak.content import EVENTS_PER_MEP
from tests.soak.decision_log import Decision, DecisionLog
from tests.soak.faults import Kind, Standing
from tests.soak.records import Event, read_records
from tests.soak.revocations import Revocations
from tests.soak.timeline import Session, Timeline

# From the first fragment of a MEP to its decision: the MEP timeout of the nodes (1 s), and half a second for sealing,
# computing and writing its batch, and for the transfer of the decision on a busy machine.
BUILDING_SECONDS = 1.5
# Consequences of a fault may appear this long after its end.
CONSEQUENCE_SECONDS = 10.0
SHOWN = 10

Row = Kind | Standing


class Place(NamedTuple):
    """Place of an event, and its missing sources there."""

    file: str
    missing: frozenset[int]


@dataclass(slots=True)
class Found:
    """The events of all files."""

    places: dict[Event, list[Place]] = field(default_factory=lambda: defaultdict(list))
    problems: list[str] = field(default_factory=list)

    def read(self, path: Path) -> None:
        """Add the events of a file, checking every byte."""
        try:
            for event, file_run, missing, damaged in read_records(path):
                if damaged:
                    self.problems.append(f"{path.name}: {event}: banks of sources {sorted(damaged)} differ")
                if file_run != event.run:
                    self.problems.append(f"{path.name}: {event} in a record of run {file_run}")
                self.places[event].append(Place(path.name, missing))
        except (ProtocolError, ValueError) as error:
            self.problems.append(f"{path.name}: {error}")


@dataclass(slots=True)
class Allowed:
    """Events that may be missing, with the reason; MEPs that may be at a second node."""

    lost: dict[Event, Row] = field(default_factory=dict)
    revoked: Revocations = field(default_factory=Revocations)


@dataclass(slots=True)
class Judgement:
    """Counts of events by outcome; each counter is keyed by the fault that explains the outcome, or that was near."""

    complete: int = 0
    incomplete_explained: Counter[Row] = field(default_factory=Counter)
    incomplete_unexplained: Counter[Row] = field(default_factory=Counter)
    lost_explained: Counter[Row] = field(default_factory=Counter)
    lost: Counter[Row] = field(default_factory=Counter)
    doubled_explained: Counter[Row] = field(default_factory=Counter)
    doubled: Counter[Row] = field(default_factory=Counter)
    problems: list[str] = field(default_factory=list)


class Judge:
    """Compares found events with fed events.

    Args:
        fed: number of MEPs of each run; ids start at 0.
        quarantine: events that the nodes have moved aside; only used in the description of losses.
    """

    def __init__(
        self,
        fed: Mapping[int, int],
        found: Found,
        quarantine: Found,
        decisions: DecisionLog,
        timeline: Timeline,
        absences: Absences,
        allowed: Allowed,
    ) -> None:
        self._fed = fed
        self._found = found
        self._quarantine = quarantine
        self._decisions = decisions
        self._timeline = timeline
        self._absences = absences
        self._allowed = allowed
        self._result = Judgement(problems=list(found.problems))
        self._near_mep: dict[tuple[int, int], Row] = {}

    def judge(self) -> Judgement:
        """The verdict; it is good if there are no problems."""
        self._judge_lost()
        self._judge_doubled()
        self._judge_incomplete()
        return self._result

    def _judge_lost(self) -> None:
        lost, result = [], self._result
        for run, meps in self._fed.items():
            for number in range(meps * EVENTS_PER_MEP):
                event = Event(run, number)
                if event in self._found.places:
                    continue
                if event in self._allowed.lost:
                    result.lost_explained[self._allowed.lost[event]] += 1
                else:
                    lost.append(event)
                    result.lost[self._near_decision_of(event)] += 1
        if lost:
            aside = sum(event in self._quarantine.places for event in lost)
            result.problems.append(f"{len(lost)} events are lost, {aside} of them are in quarantine: {some(lost)}")
        invented = [
            event
            for event in self._found.places
            if not 0 <= event.number < self._fed.get(event.run, 0) * EVENTS_PER_MEP
        ]
        if invented:
            result.problems.append(f"{len(invented)} events were never fed: {some(invented)}")

    def _judge_doubled(self) -> None:
        doubled, result = [], self._result
        for event, places in self._found.places.items():
            if len(places) == 1:
                continue
            if second := self._second_copies(event):
                result.doubled_explained.update(set(second.values()))
            else:
                doubled.append(event)
                result.doubled[self._near_decision_of(event)] += 1
        if doubled:
            files = Counter(tuple(sorted(place.file for place in self._found.places[event])) for event in doubled)
            result.problems.append(f"{len(doubled)} events are there more than once: {some(doubled)}")
            result.problems += [f"... {n} of them in {', '.join(names)}" for names, n in files.most_common(SHOWN)]

    def _judge_incomplete(self) -> None:
        """One explanation for all events of a MEP that lack the same sources in the same file."""
        result = self._result
        meps: Counter[tuple[int, int, Place, Row | None]] = Counter()
        for event, places in self._found.places.items():
            for place in places:
                if place.missing:
                    excuse = self._allowed.lost.get(event) or self._second_copies(event).get(place)
                    meps[event.run, event.number // EVENTS_PER_MEP, place, excuse] += 1
                else:
                    result.complete += 1
        unexplained, not_named = [], []
        for (run, mep, place, excuse), events in sorted(meps.items(), key=lambda item: item[0][:3]):
            session = self._timeline.session_of_file(place.file)
            if session is None:
                result.problems.append(f"{place.file} is of no session of a node")
                continue
            decision, earliest, time = self._decision(session, run, mep)
            if decision is not None and decision.missing != place.missing:
                not_named.append(
                    f"run {run}, MEP {mep}: {place.file} lacks sources {sorted(place.missing)}, "
                    f"its decision names {sorted(decision.missing)}"
                )
            begin = self._timeline.building_began(session.node, earliest, BUILDING_SECONDS)
            row = self._absences.explain(session.node, run, mep, place.missing, max(begin, session.begin), time)
            # An acknowledged and lost event is fed again only by a feeder that was killed before it got the
            # acknowledgement. A second copy lacks the fragments that went to the next node.
            row = excuse if row is None else row
            if row is not None:
                result.incomplete_explained[row] += events
                continue
            result.incomplete_unexplained[self._near(time)] += events
            reason = "decision not seen" if decision is None else decision.reason
            unexplained.append(
                f"run {run}, MEP {mep} at {session.node}, decided by {time:.2f} s ({reason}) without sources "
                f"{sorted(place.missing)}, near: {self._near(time)}; "
                f"fragments sent (s after the decision): {self._absences.when_sent(run, mep, time)}"
            )
        if not_named:
            result.problems.append(f"{len(not_named)} MEPs lack other sources than their decision names:")
            result.problems += [f"... {line}" for line in not_named[:SHOWN]]
        if unexplained:
            events = result.incomplete_unexplained.total()
            result.problems.append(f"{events} incomplete events of {len(unexplained)} MEPs are not explained:")
            result.problems += [f"... {line}" for line in unexplained[:SHOWN]]

    def _second_copies(self, event: Event) -> dict[Place, Row]:
        """Copies of an event at nodes from which its MEP was revoked, and the faults of these nodes in its run.

        Empty unless exactly one other node has the event, and each of them once.
        """
        places, revoked = self._found.places[event], self._allowed.revoked
        second: dict[Place, Row] = {}
        sessions = [self._timeline.session_of_file(place.file) for place in places]
        nodes = {session.node for session in sessions if session is not None}
        for place, session in zip(places, sessions, strict=True):
            if session is None or not revoked.include(session.node, event.run, event.number // EVENTS_PER_MEP):
                continue
            fault = self._timeline.last_standstill(session.node, *revoked.spans[event.run])
            if fault is not None:
                second[place] = fault.kind
        return second if len(nodes) == len(places) == len(second) + 1 else {}

    def _decision(self, session: Session, run: int, mep: int) -> tuple[Decision | None, float, float]:
        """The decision of a MEP in a session, None if it was not received; its earliest and latest possible time."""
        span = (session.begin, session.end + BUILDING_SECONDS)
        decisions = self._decisions.find(session.node, run, mep, *span)
        if decisions:
            return decisions[-1], decisions[-1].time, decisions[-1].time
        earliest, latest = self._decisions.times_around(session.node, run, mep, *span) or (session.begin, session.begin)
        # Neighbouring MEPs may have been decided by another node, long after it, or here, before the MEP came from
        # another node.
        sent = self._absences.first_sent(session.node, run, mep, session.begin)
        if sent is not None:
            earliest = min(earliest, sent)
            latest = latest if latest >= sent else sent + BUILDING_SECONDS
        return None, min(session.end, earliest), min(session.end, latest)

    def _near_decision_of(self, event: Event) -> Row:
        """The fault near the decision of the MEP of an event, or near decisions of neighbouring MEPs."""
        mep = event.run, event.number // EVENTS_PER_MEP
        if mep not in self._near_mep:
            times = (self._decisions.nearest_time(node, *mep) for node in self._decisions.of_node)
            time = next((time for time in times if time is not None), None)
            self._near_mep[mep] = Standing.NONE if time is None else self._near(time)
        return self._near_mep[mep]

    def _near(self, time: float) -> Row:
        span = self._timeline.last_before(time, CONSEQUENCE_SECONDS)
        return Standing.NONE if span is None else span.kind


def some(items: Iterable[object]) -> str:
    """The first few items of a list."""
    shown = [str(tuple(item)) if isinstance(item, tuple) else str(item) for item in islice(items, SHOWN + 1)]
    return ", ".join(shown[:SHOWN]) + (", ..." if len(shown) > SHOWN else "")
