"""Rings of the chain `na62_rich`: processor time of an event on one thread, against other programs in the same run.

The fit of one ring stands beside the same fit with NumPy, which takes event by event, and beside the common kernel
without vectors. The search for rings stands beside RANSAC of scikit-image (`CircleModel`) on the same events, which
takes its best ring and goes on with the other hits. The published times are those of a GPU: 50 ns for an event with
one ring, 1 us with several (G. Lamanna et al., "Fast algorithm for real-time rings reconstruction",
DESY-PROC-2014-05/42).

A whole node stands beside a bare loop (`rich_latency`).
"""

import time
from collections.abc import Callable, Iterator, Sequence
from pathlib import Path

import numpy as np
from numpy.typing import NDArray

from benchmarks.detectors import rich_latency
from benchmarks.measure import Result
from benchmarks.profile import ProfiledSequence
from hltnode.processing.framework.limits import BatchLimits
from hltnode.processing.framework.offline_runner import EncodedMep, encode_mep
from hltnode.processing.na62.chain import CHAIN
from hltnode.processing.na62.offline.simulation.decays import Decay
from hltnode.processing.na62.offline.simulation.events import Conditions, simulated_event
from hltnode.processing.na62.rich.pmt_positions import positions
from hltnode.protocol.na62.rich_banks import hits_bank

EVENTS = 256
LIMITS = BatchLimits(events=EVENTS, input_bytes=1 << 17)
REPEAT = 20
TURNS = 3
RANSAC_EVENTS = 64
RANSAC_TRIALS = 100
MIN_HITS, WINDOW = 7, 12.0

Points = Sequence[NDArray[np.float64]]


def run(_: Path) -> Iterator[Result]:
    """Rows of nanoseconds per event; ratios are medians over turns in which both sides ran."""
    one = _events(1, Conditions(decay=Decay.TRACKS, rings=1, accidentals=0.0))
    kaon = _events(2, Conditions())
    several = _events(3, Conditions(decay=Decay.THREE_PIONS))
    samples = {
        "one ring": one,
        "kaon decays": kaon,
        "three pions": several,
        "three pions, as RANSAC": several[:RANSAC_EVENTS],
    }
    meps = {name: [_mep(hits)] * REPEAT for name, hits in samples.items()}
    points = {name: [positions()[hits["pmt"]].astype(np.float64) for hits in of] for name, of in samples.items()}
    single = ProfiledSequence("single_ring", None, LIMITS, chain=CHAIN)
    common = ProfiledSequence("single_ring", None, LIMITS, chain=CHAIN, common=True)
    search = ProfiledSequence("several_rings", None, LIMITS, chain=CHAIN)
    turns = [
        {
            "fit": _kernel(single, "rich_fit_ring", meps["one ring"]),
            "read": _kernel(single, "rich_read_hits", meps["one ring"]),
            "common": _kernel(common, "rich_fit_ring", meps["one ring"]),
            "numpy": _nanoseconds(lambda: [_taubin(*p.T) for p in points["one ring"]], EVENTS),
            **{name: _kernel(search, "rich_search_rings", meps[name]) for name in samples},
            "ransac": _nanoseconds(
                lambda: [_ransac_rings(p) for p in points["three pions"][:RANSAC_EVENTS]], RANSAC_EVENTS
            ),
        }
        for _ in range(TURNS)
    ]

    def value(name: str) -> float:
        return float(np.median([turn[name] for turn in turns]))

    def ratio(of: str, to: str) -> float:
        return float(np.median([turn[of] / turn[to] for turn in turns]))

    yield Result("single ring: read hits", value("read"), "ns/event", "", None)
    yield Result("single ring: fit", value("fit"), "ns/event", "NumPy event by event", ratio("numpy", "fit"), 20.0)
    yield Result("single ring: common kernel", value("common"), "ns/event", "the form", ratio("common", "fit"), 3.0)
    for name in ("one ring", "kaon decays", "three pions"):
        yield Result(f"search: {name}", value(name), "ns/event", "", None)
    ransac = ratio("ransac", "three pions, as RANSAC")
    yield Result("search: RANSAC on three pions", value("ransac"), "ns/event", "RANSAC / search", ransac, 50.0)
    yield from rich_latency.run()


def summary(results: Sequence[Result]) -> dict[str, float | None]:
    """The main figures by the names of the report."""
    by_name = {result.name: result for result in results}
    return {
        "single_ring_ns": by_name["single ring: fit"].value,
        "read_hits_ns": by_name["single ring: read hits"].value,
        "numpy_ratio": by_name["single ring: fit"].ratio,
        "common_ratio": by_name["single ring: common kernel"].ratio,
        "one_ring_search_ns": by_name["search: one ring"].value,
        "kaon_search_ns": by_name["search: kaon decays"].value,
        "multi_ring_ns": by_name["search: three pions"].value,
        "ransac_ratio": by_name["search: RANSAC on three pions"].ratio,
        **rich_latency.summary(results),
    }


def _events(seed: int, conditions: Conditions) -> list[NDArray[np.void]]:
    rng = np.random.default_rng(seed)
    return [simulated_event(rng, conditions)[0][:64] for _ in range(EVENTS)]


def _mep(events: Sequence[NDArray[np.void]]) -> EncodedMep:
    return encode_mep(CHAIN, [[hits_bank(hits)] for hits in events])


def _kernel(sequence: ProfiledSequence, kernel: str, meps: Sequence[EncodedMep]) -> float:
    return 1e3 * sequence.microseconds_per_kernel(meps)[kernel]


def _nanoseconds(work: Callable[[], object], events: int) -> float:
    before = time.process_time_ns()
    work()
    return (time.process_time_ns() - before) / events


def _taubin(x: NDArray[np.float64], y: NDArray[np.float64]) -> tuple[float, float, float]:
    """The fit of the kernel with NumPy, as a program would write it for one event: moments and five Newton steps.

    It calls no routine of linear algebra, so no library starts threads for it.
    """
    mean_x, mean_y = float(x.mean()), float(y.mean())
    u, v = x - mean_x, y - mean_y
    z = u * u + v * v
    square = float(z.mean())
    unit = square**0.5
    xx, xy, yy = float((u * u).mean()) / square, float((u * v).mean()) / square, float((v * v).mean()) / square
    xz, yz = float((u * z).mean()) / (square * unit), float((v * z).mean()) / (square * unit)
    zz = float((z * z).mean()) / square**2
    spread, variance = xx * yy - xy * xy, zz - 1.0
    a0 = xz * (xz * yy - yz * xy) + yz * (yz * xx - xz * xy) - variance * spread
    a1, a2 = variance + 4.0 * spread - xz * xz - yz * yz, -3.0 - zz
    root = 0.0
    for _ in range(5):
        value, slope = a0 + root * (a1 + root * (a2 + root * 4.0)), a1 + root * (2.0 * a2 + root * 12.0)
        root = max(root - value / slope, 0.0)
    twice = 2.0 * (root * root - root + spread)
    a, b = (xz * (yy - root) - yz * xy) / twice, (yz * (xx - root) - xz * xy) / twice
    return mean_x + unit * a, mean_y + unit * b, unit * (a * a + b * b + 1.0) ** 0.5


def _ransac_rings(points: NDArray[np.float64]) -> int:
    """The number of rings that RANSAC finds one after the other."""
    from skimage.measure import CircleModel, ransac

    rings, free = 0, points
    while len(free) >= MIN_HITS:
        model, inside = ransac(  # type: ignore[no-untyped-call]
            free, CircleModel, min_samples=3, residual_threshold=WINDOW, max_trials=RANSAC_TRIALS, rng=1
        )
        if model is None or inside is None or inside.sum() < MIN_HITS:
            break
        rings += 1
        free = free[~inside]
    return rings
