"""Gathering of accepted events by the gathering thread: from the MEP in its slot to MDF records with reports.

3 % of the events are accepted; for real events also all. The baseline copies the same number of bytes with one memcpy.
All times are processor times of this process, with the heap of a node. Further rows add checksums, and the write to a
file of the output thread.
"""

import os
import tempfile
import time
from collections.abc import Callable, Iterator
from functools import partial
from pathlib import Path

import numpy as np

from benchmarks.measure import Result, alternating_medians
from benchmarks.readout.readout_meps import ReadoutMep, real_mep, simulated_mep
from hltnode.daemon.machine.malloc_tuning import keep_heap
from hltnode.daemon.output.event_encoder import Decided, EncodedEvents, EventEncoder
from hltnode.processing.framework.flags import FlagTable
from hltnode.processing.framework.limits import line_words
from hltnode.processing.framework.output_lists import no_words

EVENTS_PER_MEP = (100, 1000, 4000)
FRACTION = 0.03
LINES = 100
COLLECTIONS = ("velo_clusters", "velo_tracks", "long_tracks", "pvs")
RUNS = 9
LEAST_SECONDS = 0.02
TARGET_RATE = 20_000
HEADLINE = 1000
"""Events per MEP for the figures in the JSON file."""


class Gathering:
    """A MEP in a slot, with its decisions."""

    def __init__(self, mep: ReadoutMep, *, fraction: float = FRACTION, checksums: bool = False) -> None:
        n = mep.n_events
        routing = np.zeros((LINES, 3), np.uint32)
        self._encoder = EventEncoder(1, routing, COLLECTIONS, FlagTable(), checksums=checksums)
        self._mep = mep
        self._buffer = memoryview(mep.data.data)
        lines = np.zeros((n, line_words(LINES)), np.uint32)
        # Spread over the MEP, like real decisions.
        self.kept = np.sort(np.random.default_rng(1).permutation(n)[: max(1, int(fraction * n))]).astype(np.int64)
        lines[self.kept, 0] = 5
        counts = np.full((n, len(COLLECTIONS)), 30, np.uint32)
        self._decided = Decided(lines, np.zeros(n, np.uint32), counts, no_words(n))

    def encode(self) -> EncodedEvents:
        """The records of the accepted events."""
        return self._encoder.encode_batch(
            self._buffer, [(self._mep.n_events, self._mep.places)], self.kept, 7, self._decided
        )


def cpu_seconds(work: Callable[[], object]) -> float:
    """Processor time of one call, averaged over enough calls."""
    calls, begin = 0, time.process_time()
    while (elapsed := time.process_time() - begin) < LEAST_SECONDS:
        work()
        calls += 1
    return elapsed / calls


def encode_and_write(gathering: Gathering, descriptor: int) -> None:
    """Gather, and write to the start of a file."""
    os.lseek(descriptor, 0, os.SEEK_SET)
    os.write(descriptor, gathering.encode().data)


def rows(mep: ReadoutMep, *, all_too: bool) -> Iterator[Result]:
    """Gathering alone, with checksums, with the file, and for all events."""
    plain, summed = Gathering(mep), Gathering(mep, checksums=True)
    with tempfile.TemporaryFile() as file:
        ways: list[tuple[str, Gathering, Callable[[], object]]] = [
            ("", plain, plain.encode),
            (", checksums", summed, summed.encode),
            (", written to a file", plain, partial(encode_and_write, plain, file.fileno())),
        ]
        if all_too:
            whole = Gathering(mep, fraction=1.0)
            ways.append((", all accepted", whole, whole.encode))
        for what, gathering, work in ways:
            source = np.frombuffer(gathering.encode().data, np.uint8)
            n, copy = len(gathering.kept), partial(np.copyto, np.empty_like(source), source)
            seconds, baseline = alternating_medians(partial(cpu_seconds, work), partial(cpu_seconds, copy), RUNS)
            yield Result(
                f"{mep.name}, {mep.n_sources:,} sources, {mep.n_events:,} events per MEP{what} "
                f"({len(source) / n / 1000:.0f} kB each)",
                n / seconds,
                "accepted events/s of processor time",
                f"memcpy of the same bytes: {n / baseline:,.0f}",
                baseline / seconds,
                None if what else min(0.5, TARGET_RATE * baseline / n),
            )


def run(shared: Path) -> Iterator[Result]:
    """Measure real and simulated MEPs of all sizes."""
    keep_heap()
    for n_events in EVENTS_PER_MEP:
        yield from rows(real_mep(shared, n_events), all_too=True)
        yield from rows(simulated_mep(n_events), all_too=False)


def summary(results: list[Result]) -> dict[str, object]:
    """The figures of real events in MEPs of `HEADLINE` events."""
    found = next(r for r in results if r.name.startswith("real") and f"{HEADLINE:,} events per MEP (" in r.name)
    return {"events_per_core_second": found.value, "ratio": found.ratio}
