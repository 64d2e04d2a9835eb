"""Events per second of a sequence over the events of a batch and the threads: `python -m benchmarks cpu --scan`.

All points are measured in turn, in one process, with their memory allocated and touched before. Each takes the same
events: the seven real events in MEPs of 64. A batch has a number of whole MEPs. The largest batches take turns in all
workspaces, so at every point one batch is filled while another computes. Medians; the spread between turns tells how
far other work on the machine changed them.
"""

import os
import platform
import statistics
from collections.abc import Sequence
from dataclasses import dataclass
from functools import partial
from itertools import cycle, islice
from pathlib import Path
from typing import Any

from rich.table import Table

from benchmarks.lhcb.real_events import CHAIN, geometry_folder, real_events
from benchmarks.measure import Throughput, in_turn
from benchmarks.profile import ProfiledSequence
from hltnode.processing.framework.limits import BatchLimits
from hltnode.processing.framework.offline_runner import WORKSPACES, EncodedMep, encode_mep

MEP_EVENTS = 64
BATCH_EVENTS = (64, 128, 256, 512, 1024, 2048, 4096)
TURNS = 5


@dataclass(frozen=True, slots=True)
class _SharedMep(EncodedMep):
    """A MEP that stands many times in a batch. It takes memory once, so the bound of held memory ends no batch."""

    @property
    def held_bytes(self) -> int:
        return 0


@dataclass(frozen=True, slots=True)
class Point:
    """One point of the scan: medians, and the lowest and highest rate of its turns."""

    events: int
    threads: int
    per_second: float
    lowest: float
    highest: float
    cpu_us: float


def threads_of_machine() -> tuple[int, ...]:
    """1, 2, 4, ..., and all processors that this process may use."""
    n = len(os.sched_getaffinity(0))
    return tuple(sorted({n, *(1 << k for k in range(n.bit_length()) if 1 << k <= n)}))


def scan(
    sequence: str,
    shared: Path,
    turns: int = TURNS,
    batches: Sequence[int] = BATCH_EVENTS,
    threads: Sequence[int] | None = None,
) -> list[Point]:
    """Measure every pair of a number of events and of threads. Raises FileNotFoundError without the real events, and
    BackendError if the memory of all pairs together is short."""
    events = list(islice(cycle(real_events(shared)), MEP_EVENTS))
    mep = encode_mep(CHAIN.with_sequence(sequence), events, encoding="retina")
    pairs = [(n, k) for n in batches for k in threads or threads_of_machine()]
    runs = [partial(_engine(sequence, mep, n, k, shared).throughput, meps_of_turn(mep, max(batches))) for n, k in pairs]
    taken = in_turn(runs, turns)
    return [_point(n, k, found) for (n, k), found in zip(pairs, taken, strict=True)]


def _engine(sequence: str, mep: EncodedMep, events: int, threads: int, shared: Path) -> ProfiledSequence:
    n_meps = events // MEP_EVENTS
    limits = BatchLimits(
        events=events, meps=n_meps, input_bytes=n_meps * (mep.data.nbytes + 4096), rows=n_meps * len(mep.fragments)
    )
    return ProfiledSequence(sequence, geometry_folder(shared), limits, threads)


def meps_of_turn(mep: EncodedMep, largest: int) -> list[EncodedMep]:
    """Events for one of the largest batches in each workspace; smaller batches share them."""
    shared = _SharedMep(mep.events, mep.data, mep.fragments, mep.unknown_types)
    return [shared] * (WORKSPACES * largest // MEP_EVENTS)


def _point(events: int, threads: int, found: Sequence[Throughput]) -> Point:
    rates = [one.per_second for one in found]
    return Point(
        events,
        threads,
        statistics.median(rates),
        min(rates),
        max(rates),
        statistics.median(one.cpu_us for one in found),
    )


def table_of(sequence: str, points: Sequence[Point]) -> Table:
    """Rates by events (rows) and threads, with their range, and the processor time of an event."""
    threads = sorted({point.threads for point in points})
    table = Table(
        "events of a batch",
        *(f"{n} thread{'s' if n > 1 else ''}: events/s" for n in threads),
        *(f"{n}: us of processor time" for n in threads),
        title=f"{sequence}: events per second (lowest to highest turn), load {os.getloadavg()[0]:.1f}",
    )
    by_pair = {(point.events, point.threads): point for point in points}
    for events in sorted({point.events for point in points}):
        of_row = [by_pair[events, n] for n in threads]
        rates = (f"{it.per_second:,.0f} ({it.lowest:,.0f} to {it.highest:,.0f})" for it in of_row)
        table.add_row(f"{events}", *rates, *(f"{it.cpu_us:.1f}" for it in of_row))
    return table


def figures_of(sequence: str, points: Sequence[Point]) -> dict[str, Any]:
    """The JSON object: the machine, and every point."""
    machine = {
        "processor": platform.processor() or platform.machine(),
        "cores": len(os.sched_getaffinity(0)),
        "load": os.getloadavg()[0],
    }
    rows = [{name: getattr(point, name) for name in Point.__slots__} for point in points]
    return {"machine": machine, "sequence": sequence, "points": rows}
