"""Growth of the time of each algorithm with the size of events, and the cost of the most expensive events.

The first part simulates events of 1 to 20 collisions, and of ten times the mean of a crossing, without the global event
cut. It fits the exponent of the time of each algorithm against the hits of all detectors. Above 1, an algorithm grows
faster than its events.

The second part takes dense and artificial events that pass the cuts, and compares their processor time with that of the
densest real event.
"""

from collections.abc import Iterator, Sequence
from itertools import repeat
from pathlib import Path

import numpy as np
from numpy.typing import NDArray

from benchmarks.lhcb.real_events import CHAIN, geometry_folder, real_events
from benchmarks.measure import Result, median
from benchmarks.profile import ProfiledSequence
from hltnode.processing.framework.limits import BatchLimits
from hltnode.processing.framework.offline_runner import encode_mep
from hltnode.processing.lhcb.offline.simulation.detector import Detector
from hltnode.processing.lhcb.offline.simulation.full_generator import FullSimulation
from hltnode.processing.lhcb.offline.simulation.generation.sources import sample_source
from hltnode.processing.lhcb.raw_data.global_event_cut import global_event_cut
from hltnode.processing.lhcb.scifi.collections import MAX_HITS_PER_EVENT
from hltnode.processing.selection.configuration.overrides import Override
from hltnode.protocol.raw_data.raw_bank import RawBank
from tests.processing.lhcb.dense_events import DENSE, TEN_TIMES

COLLISIONS = (1.0, 2.0, 4.0, 7.6, 12.0, 20.0)
EVENTS = 24
SEED = 5
RUNS = 5
NO_CUT = tuple(
    Override(global_event_cut.name, constant.name, MAX_HITS_PER_EVENT) for constant in global_event_cut.constants
)
COPIES = 4
"""Of an event in a MEP of its own."""
MAX_OF_DENSEST = 20
"""Maximum time of any event, relative to the densest real event."""
LEAST = 0.5
"""Time per event in us: algorithms below it in the largest events are not printed."""

Sizes = NDArray[np.float64]


def simulated(nu: float) -> list[list[RawBank]]:
    """Minimum-bias events with a mean number of collisions."""
    detector = Detector.builtin()
    source = sample_source("minbias", nu, detector.velo.beamline)
    return list(FullSimulation(detector, source).events(EVENTS, SEED))


def measured(name: str, samples: Sequence[Sequence[Sequence[RawBank]]], geometry: Path | None) -> dict[str, Sizes]:
    """Values per event by kernel, and "hits": one number for each sample."""
    found: dict[str, list[float]] = {}
    chain = CHAIN.with_sequence(name)
    for events in samples:
        mep = encode_mep(chain, events, encoding="retina")
        limits = BatchLimits(events=len(events), meps=1, input_bytes=-(-mep.data.nbytes // 64) * 64 + 64)
        profiled = ProfiledSequence(name, geometry, limits, overrides=NO_CUT)
        runs = [profiled.microseconds_per_kernel(repeat(mep, 4)) for _ in range(RUNS + 1)][1:]
        for kernel in runs[0]:
            found.setdefault(kernel, []).append(float(np.median([it[kernel] for it in runs])))
        (batch,) = profiled.runner.run([mep])
        counts = batch.workspace.output.counts
        hits = sum(int(n.sum()) for what, n in counts.items() if what.endswith(("clusters", "hits")))
        found.setdefault("hits", []).append(hits / len(events))
    return {kernel: np.array(values) for kernel, values in found.items()}


def exponent(hits: Sizes, times: Sizes) -> float:
    """The exponent of the hits that fits the times."""
    return float(np.polyfit(np.log(hits), np.log(np.maximum(times, 1e-3)), 1)[0])


def run(shared: Path) -> Iterator[Result]:
    """Exponents for the sequence with the most algorithms, dense events for all sequences."""
    name = max(CHAIN.sequences, key=lambda it: len(CHAIN.sequences[it].algorithms.algorithms))
    yield from exponents(name)
    for sequence in CHAIN.sequences:
        yield from densest(sequence, shared)


def exponents(name: str) -> Iterator[Result]:
    """Exponent of each algorithm for samples of up to 20 collisions; of all together also beyond."""
    found = measured(name, [simulated(nu) for nu in (*COLLISIONS, TEN_TIMES)], None)
    hits = found.pop("hits")
    for number, nu in ((-2, COLLISIONS[-1]), (-1, TEN_TIMES)):
        growth = float(hits[number] / hits[0])
        yield Result(f"{name}: hits, nu = {nu:g}", float(hits[number]), "hits", f"nu = {COLLISIONS[0]:g}", growth)
    for kernel, times in sorted(found.items(), key=lambda item: -item[1][-2]):
        if times[-2] >= LEAST:
            yield Result(f"  {kernel}", float(times[-2]), "us/event", "exponent", exponent(hits[:-1], times[:-1]))
    whole = sum(found.values())
    assert isinstance(whole, np.ndarray)
    yield Result("  all", float(whole[-2]), "us/event", "exponent", exponent(hits[:-1], whole[:-1]))
    yield Result(f"  all, nu = {TEN_TIMES:g}", float(whole[-1]), "us/event", "exponent", exponent(hits, whole))


def densest(name: str, shared: Path) -> Iterator[Result]:
    """Times of the densest real event and of each artificial one; the ratio compares with the maximum."""
    limits = BatchLimits(events=COPIES, meps=1, input_bytes=4 << 20)
    of_real = ProfiledSequence(name, geometry_folder(shared), limits)
    real = max(event_us(of_real, name, event) for event in real_events(shared))
    yield Result(f"{name}: densest real event", real, "us/event", "", None)
    made_up = ProfiledSequence(name, None, limits)
    for what, make in DENSE.items():
        taken = event_us(made_up, name, make())
        allowed = f"{MAX_OF_DENSEST} of the densest real one"
        yield Result(f"  {what}", taken, "us/event", allowed, MAX_OF_DENSEST * real / taken, 1.0)


def event_us(sequence: ProfiledSequence, name: str, event: Sequence[RawBank]) -> float:
    """Processor time of an event."""
    meps = [encode_mep(CHAIN.with_sequence(name), [event] * COPIES, encoding="retina")]
    return median(lambda: sequence.throughput(meps).cpu_us, RUNS)
