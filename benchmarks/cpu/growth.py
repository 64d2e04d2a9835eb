"""Growth of the time of an event with its hits: the fitted exponent for samples of 1 to 40 collisions."""

import statistics
from collections.abc import Mapping, Sequence
from contextlib import ExitStack
from dataclasses import dataclass

import numpy as np

from benchmarks.cpu.comparison import Worker, work_of
from benchmarks.cpu.forms import Form, simulated
from benchmarks.cpu.revision import WORKING_TREE

COLLISIONS = (1.0, 2.0, 4.0, 7.6, 12.0, 20.0, 40.0)
"""Mean numbers of collisions. In Run 3 the mean is 7.6, and one event in two million has 25 or more."""
EVENTS = 40
"""Number of events of each sample."""
TARGET = 1.1
"""Target of the exponent of the whole chain."""
DENSE_FROM = 7.6
"""The exponent of dense events is fitted from this mean number of collisions on."""
DENSE_TARGET = 1.2
"""Target of the exponent of dense events."""


@dataclass(frozen=True, slots=True)
class Growth:
    """One form: hits and processor time per event of each sample, and the exponents of all and of each algorithm."""

    form: str
    hits: Sequence[float]
    cpu_us: Sequence[float]
    exponent: float
    exponent_7_40: float
    """From DENSE_FROM collisions on: without events in which work that does not depend on hits dominates."""
    us: Mapping[str, float]
    """Processor time per event by the mean number of collisions."""
    algorithms: Mapping[str, tuple[float, float]]
    """Time per event of the densest sample in us, and exponent."""


def growth(form: Form, turns: int, instructions: str | None) -> Growth:
    """Measure the samples in turn. Hits are those of all detectors whose objects the chain counts.

    Raises RefusedError for an instruction set that is not there.
    """
    with ExitStack() as stack:
        samples = [simulated(nu, EVENTS) for nu in COLLISIONS]
        works = [work_of(form, it, form.sequence, instructions=instructions) for it in samples]
        workers = [stack.enter_context(Worker(WORKING_TREE, work)) for work in works]
        hits = [_hits(worker) for worker in workers]
        for worker in workers:
            worker.measure()
        plain = [[worker.measure().cpu for worker in workers] for _ in range(turns)]
        profiles = [[worker.measure(profile=True).algorithms for worker in workers] for _ in range(turns)]
    cpu = [statistics.median(of_sample) for of_sample in zip(*plain, strict=True)]
    algorithms: dict[str, tuple[float, float]] = {}
    for name in profiles[0][0]:
        times = [statistics.median(turn[i][name] for turn in profiles) for i in range(len(samples))]
        algorithms[name] = times[-1], exponent(hits, times)
    return Growth(
        form.name,
        hits,
        cpu,
        exponent(hits, cpu),
        exponent_of_dense(hits, cpu),
        {f"{nu:g}": us for nu, us in zip(COLLISIONS, cpu, strict=True)},
        algorithms,
    )


def _hits(worker: Worker) -> float:
    counts = {name: sum(of) for name, of in worker.first["counts"].items() if name.endswith(("clusters", "hits"))}
    return float(sum(counts.values())) / float(worker.first["events"])


def exponent_of_dense(hits: Sequence[float], times: Sequence[float]) -> float:
    """The exponent of the hits that fits the times of the samples from DENSE_FROM collisions on."""
    first = COLLISIONS.index(DENSE_FROM)
    return exponent(hits[first:], times[first:])


def exponent(hits: Sequence[float], times: Sequence[float]) -> float:
    """The exponent of the hits that fits the times."""
    return float(np.polyfit(np.log(hits), np.log(np.maximum(times, 1e-3)), 1)[0])
