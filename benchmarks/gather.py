"""Gathering of accepted events: from the MEP in its slot to MDF records with reports, as the gathering thread does it.

Three of a hundred events are accepted. The baseline copies as many bytes at once, with memcpy; everything is processor
time of this process. A second row adds the write to a file, as the output thread does it.
"""

import os
import tempfile
import time
from collections.abc import Callable, Iterator
from functools import partial
from pathlib import Path

import numpy as np

from benchmarks.measure import Result, alternating_medians
from benchmarks.readout_meps import ReadoutMep, real_mep, simulated_mep
from hltnode.daemon.output.event_encoder import Decided, EncodedEvents, EventEncoder
from hltnode.processing.framework.limits import line_words

EVENTS_PER_MEP = (100, 1000, 4000)
FRACTION = 0.03
LINES = 100
COLLECTIONS = ("velo_clusters", "velo_tracks", "long_tracks", "pvs")
RUNS = 9
LEAST_SECONDS = 0.02
TARGET_RATE = 20_000
HEADLINE = 1000
"""Events per MEP of the figures in the JSON file."""


class Gathering:
    """A MEP in a slot, with its decisions."""

    def __init__(self, mep: ReadoutMep, *, checksums: bool = False) -> None:
        n = mep.n_events
        routing = np.zeros((LINES, 3), np.uint32)
        self._encoder = EventEncoder(1, routing, COLLECTIONS, checksums=checksums)
        self._mep = mep
        self._buffer = memoryview(mep.data.data)
        lines = np.zeros((n, line_words(LINES)), np.uint32)
        # Spread over the MEP, as decisions are.
        self.kept = np.sort(np.random.default_rng(1).permutation(n)[: max(1, int(FRACTION * n))]).astype(np.int64)
        lines[self.kept, 0] = 5
        counts = np.full((n, len(COLLECTIONS)), 30, np.uint32)
        self._decided = Decided(lines, np.zeros(n, np.uint32), counts, np.zeros((n, 0), np.uint32))

    def encode(self) -> EncodedEvents:
        """The records of the accepted events."""
        return self._encoder.encode_batch(
            self._buffer, [(self._mep.n_events, self._mep.places)], self.kept, 7, self._decided
        )


def cpu_seconds(work: Callable[[], object]) -> float:
    """Processor time of one call, from as many as take a while."""
    calls, begin = 0, time.process_time()
    while (elapsed := time.process_time() - begin) < LEAST_SECONDS:
        work()
        calls += 1
    return elapsed / calls


def encode_and_write(gathering: Gathering, descriptor: int) -> None:
    """Gather, and write to a file from its beginning."""
    os.lseek(descriptor, 0, os.SEEK_SET)
    os.write(descriptor, gathering.encode().data)


def rows(mep: ReadoutMep) -> Iterator[Result]:
    """Gathering alone, with checksums, and with the file."""
    plain, summed = Gathering(mep), Gathering(mep, checksums=True)
    encoded = plain.encode()
    n, nbytes = len(plain.kept), len(encoded.data)
    source, target = np.frombuffer(encoded.data, np.uint8), np.empty(nbytes, np.uint8)
    copy = partial(np.copyto, target, source)
    name = f"{mep.name}, {mep.n_sources:,} sources, {mep.n_events:,} events per MEP"
    with tempfile.TemporaryFile() as file:
        ways: dict[str, Callable[[], object]] = {
            "": plain.encode,
            ", checksums": summed.encode,
            ", written to a file": partial(encode_and_write, plain, file.fileno()),
        }
        for what, work in ways.items():
            seconds, baseline = alternating_medians(partial(cpu_seconds, work), partial(cpu_seconds, copy), RUNS)
            yield Result(
                f"{name}{what} ({nbytes / n / 1000:.0f} kB each)",
                n / seconds,
                "accepted events/s of processor time",
                f"memcpy of the same bytes: {n / baseline:,.0f}",
                baseline / seconds,
                None if what else min(0.5, TARGET_RATE * baseline / n),
            )


def run(shared: Path) -> Iterator[Result]:
    """Real and simulated MEPs of all sizes."""
    for n_events in EVENTS_PER_MEP:
        yield from rows(real_mep(shared, n_events))
        yield from rows(simulated_mep(n_events))


def summary(results: list[Result]) -> dict[str, object]:
    """The figures of real events in MEPs of `HEADLINE`."""
    found = next(r for r in results if r.name.startswith("real") and f"{HEADLINE:,} events per MEP (" in r.name)
    return {"events_per_core_second": found.value, "ratio": found.ratio}
