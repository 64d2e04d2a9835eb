"""How the time of each algorithm grows with the size of events: simulated ones of 1 to 20 collisions.

Of each algorithm the exponent that fits its time against the hits of all detectors. Above 1 an algorithm grows faster
than its events.
"""

from collections.abc import Iterator, Sequence
from itertools import repeat
from pathlib import Path

import numpy as np
from numpy.typing import NDArray

from benchmarks.measure import Result
from benchmarks.profile import ProfiledSequence
from hltnode.processing.framework.limits import BatchLimits
from hltnode.processing.framework.offline_runner import encode_mep
from hltnode.processing.lhcb.hlt1 import HLT1
from hltnode.processing.lhcb.simulation.detector import Detector
from hltnode.processing.lhcb.simulation.full_generator import FullSimulation
from hltnode.processing.lhcb.simulation.generation.sources import sample_source
from hltnode.protocol.raw_data.raw_bank import RawBank

COLLISIONS = (1.0, 2.0, 4.0, 7.6, 12.0, 20.0)
EVENTS = 24
SEED = 5
RUNS = 5
LEAST = 0.5
"""us per event: what takes less, in the largest events, is left out."""

Sizes = NDArray[np.float64]


def simulated(nu: float) -> list[list[RawBank]]:
    """Minimum-bias events with a mean number of collisions."""
    detector = Detector.builtin()
    source = sample_source("minbias", nu, detector.velo.beamline)
    return list(FullSimulation(detector, source).events(EVENTS, SEED))


def measured(name: str, samples: Sequence[Sequence[Sequence[RawBank]]], geometry: Path | None) -> dict[str, Sizes]:
    """By kernel, and "hits": one number for each sample, per event."""
    found: dict[str, list[float]] = {}
    chain = HLT1.with_sequence(name)
    for events in samples:
        mep = encode_mep(chain, events, encoding="retina")
        limits = BatchLimits(events=len(events), meps=1, input_bytes=-(-mep.data.nbytes // 64) * 64 + 64)
        profiled = ProfiledSequence(name, geometry, limits)
        runs = [profiled.microseconds_per_kernel(repeat(mep, 4)) for _ in range(RUNS + 1)][1:]
        for kernel in runs[0]:
            found.setdefault(kernel, []).append(float(np.median([it[kernel] for it in runs])))
        (batch,) = profiled.runner.run([mep])
        counts = batch.workspace.output.counts
        hits = sum(int(n.sum()) for what, n in counts.items() if what.endswith(("clusters", "hits")))
        found.setdefault("hits", []).append(hits / len(events))
    return {kernel: np.array(values) for kernel, values in found.items()}


def exponent(hits: Sizes, times: Sizes) -> float:
    """The power of the hits that fits the times."""
    return float(np.polyfit(np.log(hits), np.log(np.maximum(times, 1e-3)), 1)[0])


def run(_: Path) -> Iterator[Result]:
    """Measure the sequence with the most algorithms."""
    name = max(HLT1.sequences, key=lambda it: len(HLT1.sequences[it].algorithms.algorithms))
    found = measured(name, [simulated(nu) for nu in COLLISIONS], None)
    hits = found.pop("hits")
    yield Result(
        f"{name}: hits of an event", float(hits[-1]), "hits", f"nu = {COLLISIONS[0]:g}", float(hits[-1] / hits[0])
    )
    for kernel, times in sorted(found.items(), key=lambda item: -item[1][-1]):
        if times[-1] >= LEAST:
            yield Result(f"  {kernel}", float(times[-1]), "us/event", "exponent", exponent(hits, times))
    whole = sum(found.values())
    assert isinstance(whole, np.ndarray)
    yield Result("  all", float(whole[-1]), "us/event", "exponent", exponent(hits, whole))
