"""History of a soak: spans of faults and sessions of nodes. Times are CLOCK_MONOTONIC in seconds."""

from collections.abc import Iterable
from dataclasses import dataclass, field
from math import inf

from tests.soak.faults import STANDSTILLS, Kind


@dataclass(slots=True)
class Span:
    """A fault from its start until the process runs normally again."""

    kind: Kind
    target: str
    begin: float
    end: float = inf
    in_flight: int | None = None
    """Events without acknowledgement when it struck; None if the nodes did not answer."""


@dataclass(slots=True)
class Session:
    """One process of a node; the names of its files start with `prefix`."""

    node: str
    prefix: str
    begin: float
    end: float = inf


@dataclass(slots=True)
class Timeline:
    """The history of a soak."""

    spans: list[Span] = field(default_factory=list)
    sessions: list[Session] = field(default_factory=list)

    def strike(self, kind: Kind, target: str, now: float) -> Span:
        """Record the start of a fault; its end is set later."""
        span = Span(kind, target, now)
        self.spans.append(span)
        return span

    def of_target(self, target: str, kinds: Iterable[Kind]) -> list[Span]:
        """The faults of some kinds on one process."""
        return [span for span in self.spans if span.target == target and span.kind in kinds]

    def session_of_file(self, name: str) -> Session | None:
        """The session that created a file."""
        return next((session for session in self.sessions if name.startswith(session.prefix + "_")), None)

    def building_began(self, node: str, decided: float, seconds: float) -> float:
        """Earliest start of the building of a MEP: `seconds` of running time of the node before its decision."""
        at = decided
        for span in sorted(self.of_target(node, STANDSTILLS), key=lambda span: span.end, reverse=True):
            if span.begin >= at:
                continue
            ran = max(0.0, at - span.end)
            if ran >= seconds:
                break
            seconds -= ran
            at = span.begin
        return at - seconds

    def was_hindered(self, node: str, begin: float, end: float) -> bool:
        """Whether a node was down or disturbed at some time of a span."""
        return self.last_standstill(node, begin, end) is not None

    def last_standstill(self, node: str, begin: float, end: float) -> Span | None:
        """The last fault in a time span during which a node did not decide."""
        spans = [span for span in self.of_target(node, STANDSTILLS) if span.begin <= end and span.end >= begin]
        return max(spans, key=lambda span: span.begin, default=None)

    def last_before(self, time: float, within: float) -> Span | None:
        """The last fault that started before a time and had not been over for longer than `within`."""
        near = [span for span in self.spans if span.begin <= time <= span.end + within]
        return max(near, key=lambda span: span.begin, default=None)
