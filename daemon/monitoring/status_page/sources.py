"""Lag of the readout sources for the status page: a summary by detector, and the sources with the largest lag."""

from collections.abc import Iterable, Mapping, Set
from dataclasses import dataclass
from typing import NamedTuple

from hltnode.protocol.raw_data.source_id import number_of, subdetector_of

SHOWN = 20


class SourceState(NamedTuple):
    """Counters of a source: time of its last fragment (monotonic ns, None: never), number of MEPs without the
    source."""

    source: int
    last_seen_ns: int | None
    missing: int


@dataclass(frozen=True, slots=True)
class SourceRow:
    """A source; lag: seconds since its last fragment, None before the first."""

    source: int
    detector: str
    number: int
    lag: float | None
    missing: int
    silent: bool


@dataclass(slots=True)
class DetectorRow:
    """Summary of the sources of a detector."""

    detector: str
    sources: int = 0
    silent: int = 0
    missing: int = 0
    worst_lag: float | None = 0.0
    """None: a source has not delivered yet."""


def source_rows(
    states: Iterable[SourceState], silent: Set[int], now_ns: int, names: Mapping[int, str]
) -> tuple[list[DetectorRow], list[SourceRow]]:
    """Detectors in the order of their sources, and the sources with the largest lag; sources that never delivered come
    first.

    names: names of sub-detectors; a sub-detector without a name is shown by its number.
    """
    detectors: dict[int, DetectorRow] = {}
    rows = []
    for state in states:
        number = subdetector_of(state.source)
        if number not in detectors:
            detectors[number] = DetectorRow(names.get(number, f"detector {number}"))
        of = detectors[number]
        lag = None if state.last_seen_ns is None else max(0, now_ns - state.last_seen_ns) * 1e-9
        of.sources += 1
        of.silent += state.source in silent
        of.missing += state.missing
        of.worst_lag = None if lag is None or of.worst_lag is None else max(of.worst_lag, lag)
        rows.append((lag is not None, -(lag or 0.0), -state.missing, state))
    worst = sorted(rows, key=lambda row: row[:3])[:SHOWN]
    return [detectors[number] for number in sorted(detectors)], [
        SourceRow(
            state.source,
            detectors[subdetector_of(state.source)].detector,
            number_of(state.source),
            -lag if seen else None,
            state.missing,
            state.source in silent,
        )
        for seen, lag, _, state in worst
    ]
