"""Triggers of the chain `km3net`: processor time for a hit on one thread, beside NumPy in the same run.

The stream is that of a tower of 84 PMTs at 55 kHz, two of them at 1 MHz: 6.5 million hits a second. NumPy sorts and
finds N7, the coincidences and the candidates by comparing the sorted hits with themselves, shifted by one to some
places: sub-slice by sub-slice, as the chain gets them, and in another row a whole time slice at once. Head-room is the
rate that two threads of this speed can take, over five times 4.6 million hits a second, the nominal rate without
bioluminescence. The published time is 500 ms for 1 s of data with the preparation (B. Bouhadef et al., "Parallel
Neutrino Triggers Using GPUs for an Underwater Telescope", DESY-PROC-2014-05, section 5).
"""

import time
from collections.abc import Callable, Iterator, Sequence
from pathlib import Path

import numpy as np
from numpy.typing import NDArray

from benchmarks.measure import Result
from benchmarks.profile import ProfiledSequence
from hltnode.processing.framework.limits import BatchLimits
from hltnode.processing.framework.offline_runner import encode_mep
from hltnode.processing.km3net.chain import CHAIN
from hltnode.processing.km3net.detector_constants import SUB_SLICE_NS
from hltnode.processing.km3net.geometry.pmt_table import km3net_tower
from hltnode.processing.km3net.offline.simulation.sample import banks_of_hits
from hltnode.processing.km3net.offline.simulation.stream import Conditions, HitStream

SUB_SLICES = 512
LIMITS = BatchLimits(events=SUB_SLICES, input_bytes=1 << 20, rows=32)
REPEAT = 10
TURNS = 3
NOMINAL_RATE = 4.6e6
TIME_WINDOW, SIMPLE, FLOOR, ADJACENT = 500, 20, 100, 250
KERNELS = ("fragment_offsets", "km3net_sort_hits", "km3net_find_candidates")


def run(_: Path) -> Iterator[Result]:
    """Rows of nanoseconds for a hit; ratios are medians over turns in which both sides ran."""
    detector = km3net_tower()
    stream = HitStream(detector, Conditions(), 1)
    parts = [stream.hits(number)[0] for number in range(SUB_SLICES)]
    n_hits = sum(map(len, parts))
    mep = encode_mep(CHAIN, [banks_of_hits(stream, hits) for hits in parts])
    sequence = ProfiledSequence("muon_windows", None, LIMITS, chain=CHAIN)
    common = ProfiledSequence("muon_windows", None, LIMITS, chain=CHAIN, common=True)
    places = np.column_stack([detector.pmts[name].astype(np.int64) for name in ("floor", "group")])
    whole = np.concatenate([_words(hits, i * SUB_SLICE_NS) for i, hits in enumerate(parts)])
    small = [_words(hits, 0) for hits in parts]
    turns = []
    for _turn in range(TURNS):
        of_kernels = sequence.microseconds_per_kernel([mep] * REPEAT)
        of_common = common.microseconds_per_kernel([mep] * REPEAT)
        per_hit = SUB_SLICES * 1e3 / n_hits
        turns.append(
            {
                **{name: of_kernels[name] * per_hit for name in KERNELS},
                "kernels": sum(of_kernels[name] for name in KERNELS) * per_hit,
                "common": sum(of_common[name] for name in KERNELS) * per_hit,
                "slice": _nanoseconds(lambda: candidate_times(whole, places), n_hits),
                "sub-slices": _nanoseconds(lambda: [candidate_times(each, places) for each in small], n_hits),
            }
        )

    def value(name: str) -> float:
        return float(np.median([turn[name] for turn in turns]))

    def ratio(of: str, to: str = "kernels") -> float:
        return float(np.median([turn[of] / turn[to] for turn in turns]))

    for name in KERNELS:
        yield Result(name, value(name), "ns/hit", "", None)
    yield Result("all kernels", value("kernels"), "ns/hit", "NumPy by sub-slices", ratio("sub-slices"), 20.0)
    yield Result("common kernels", value("common"), "ns/hit", "the forms", ratio("common"), 2.0)
    yield Result("NumPy by sub-slices", value("sub-slices"), "ns/hit", "", None)
    yield Result("NumPy on the whole slice", value("slice"), "ns/hit", "the kernels", ratio("slice"))
    rate = 1e9 / value("kernels")
    yield Result("one thread", rate, "hits/s", "", None)
    yield Result("head-room of two threads", 2 * rate / (5 * NOMINAL_RATE), "", "", 2 * rate / (5 * NOMINAL_RATE), 1.0)


def summary(results: Sequence[Result]) -> dict[str, float | None]:
    """The main figures by the names of the report."""
    by_name = {result.name: result for result in results}
    return {
        "ratio": by_name["all kernels"].ratio,
        "whole_slice_ratio": by_name["NumPy on the whole slice"].ratio,
        "common_ratio": by_name["common kernels"].ratio,
        "hits_per_second": by_name["one thread"].value,
        "headroom": by_name["head-room of two threads"].value,
    }


def _words(hits: NDArray[np.void], start: int) -> NDArray[np.int64]:
    """Time in the upper bits, PMT in the lower 16."""
    words: NDArray[np.int64] = (hits["time"].astype(np.int64) + start) << 16 | hits["pmt"]
    return words


def candidate_times(words: NDArray[np.int64], places: NDArray[np.int64]) -> NDArray[np.int64]:
    """Times of the hits that begin a candidate, by sorting and shifted comparisons. places: floor and group of PMTs."""
    words = np.sort(words)
    times, pmts = words >> 16, words & 0xFFFF
    n = len(words)
    if n < 7:
        return times[:0]
    floor, group = places[pmts].T
    far = np.full((3, n), n, np.int64)
    for k in range(1, n):
        apart = times[k:] - times[:-k]
        if not (apart < ADJACENT).any():
            break
        same = (floor[k:] == floor[:-k]) & (pmts[k:] != pmts[:-k])
        found = (
            same & (group[k:] == group[:-k]) & (apart < SIMPLE),
            same & (apart < FLOOR),
            (np.abs(floor[k:] - floor[:-k]) == 1) & (apart < ADJACENT),
        )
        for partner, pairs in zip(far, found, strict=True):
            at = np.flatnonzero(pairs)
            partner[at] = np.minimum(partner[at], at + k)
    begins = np.flatnonzero(times[6:] - times[:-6] < TIME_WINDOW)
    ends = np.searchsorted(times, times[begins] + TIME_WINDOW)
    nearest = np.minimum.accumulate(far[:, ::-1], axis=1)[:, ::-1]
    sc, fc, afc = nearest[:, begins] < ends
    found_times: NDArray[np.int64] = times[begins[(sc | fc) & afc]]
    return found_times


def _nanoseconds(work: Callable[[], object], hits: int) -> float:
    before = time.process_time_ns()
    work()
    return (time.process_time_ns() - before) / hits
