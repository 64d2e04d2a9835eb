"""Triplets of the chain `mu3e`: processor time on one thread, beside NumPy in the same run.

The stream has 10^8 muons a second in sub-slices of 400 ns. NumPy joins the sorted hits of three layers by their times,
applies the geometric cuts and fits all triplets at once, in float32 with the formulas of the kernels: sub-slice by
sub-slice, as the chain gets them, and in another row a whole time slice at once. Combinations are all hits of layer 0
times those of layers 1 and 2 in the same frame of 50 ns; D. vom Bruch, "Track and Vertex Reconstruction on GPUs for the
Mu3e Experiment", DESY-PROC-2014-05, section 5, has 1.4e10 of them a second on a GTX 680, with sorting and copies.
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
from hltnode.processing.mu3e.chain import CHAIN
from hltnode.processing.mu3e.detector_constants import FRAME_NS, MEV_PER_MM, SUB_SLICE_NS
from hltnode.processing.mu3e.geometry.sensor_table import pixel_positions, sensors
from hltnode.processing.mu3e.hits.sort_hits import HIT_WINDOW
from hltnode.processing.mu3e.offline.simulation.stream import Conditions, HitStream
from hltnode.processing.mu3e.tracks.fit_triplets import ERRORS, LIMITS
from hltnode.processing.mu3e.tracks.select_triplets import CUTS
from hltnode.protocol.mu3e.hit_banks import hits_bank

SUB_SLICES = 256
LIMITS_OF_BATCH = BatchLimits(events=SUB_SLICES, input_bytes=4 << 20, rows=32)
REPEAT = 5
TURNS = 3
TRIPLETS = ("mu3e_select_triplets", "mu3e_fit_triplets")
EXTENSION = "mu3e_extend_tracks"
KERNELS = ("fragment_offsets", "mu3e_sort_hits", *TRIPLETS, EXTENSION, "mu3e_find_vertices")
Floats = NDArray[np.float32]
Layers = list[tuple[NDArray[np.int64], Floats]]
"""Times in ns, ascending, and places f32[hits, 3] in mm of the hits of layers 0, 1 and 2."""


def run(_: Path) -> Iterator[Result]:
    """Rows of microseconds for a sub-slice; ratios are medians over turns in which both sides ran."""
    stream = HitStream(Conditions(), 1)
    parts = [stream.sub_slice(number).hits for number in range(SUB_SLICES)]
    mep = encode_mep(CHAIN, [[hits_bank(i, hits) for i, hits in enumerate(part)] for part in parts])
    joined = [np.concatenate(part) for part in parts]
    small = [layers_of(hits, hits["time"].astype(np.int64)) for hits in joined]
    shifts = np.repeat(np.arange(SUB_SLICES) * SUB_SLICE_NS, [len(hits) for hits in joined])
    everything = np.concatenate(joined)
    whole = layers_of(everything, everything["time"] + shifts)
    n_combinations, n_triplets = combinations(whole), len(selected(whole)[0])
    two, common, one = (
        ProfiledSequence(name, None, LIMITS_OF_BATCH, chain=CHAIN, common=is_common)
        for name, is_common in (("decays", False), ("decays", True), ("one_kernel", False))
    )
    turns = []
    for _turn in range(TURNS):
        of_two, of_common, of_one = (each.microseconds_per_kernel([mep] * REPEAT) for each in (two, common, one))
        turns.append(
            {
                **{name: of_two[name] for name in KERNELS},
                "triplets": sum(of_two[name] for name in TRIPLETS),
                "common": sum(of_common[name] for name in TRIPLETS),
                "common extension": of_common[EXTENSION],
                "one kernel": of_one["mu3e_find_triplets"],
                "sub-slices": _microseconds(lambda: [triplets(each) for each in small]),
                "slice": _microseconds(lambda: triplets(whole)),
            }
        )

    def value(name: str) -> float:
        return float(np.median([turn[name] for turn in turns]))

    def ratio(of: str, to: str = "triplets") -> float:
        return float(np.median([turn[of] / turn[to] for turn in turns]))

    unit = "us/sub-slice"
    for name in KERNELS:
        yield Result(name, value(name), unit, "", None)
    yield Result("triplets", value("triplets"), unit, "NumPy by sub-slices", ratio("sub-slices"), 50.0)
    yield Result("common kernels", value("common"), unit, "the forms", ratio("common"), 2.0)
    yield Result(
        "common extension", value("common extension"), unit, "its form", ratio("common extension", EXTENSION), 2.0
    )
    yield Result("one kernel", value("one kernel"), unit, "two kernels", ratio("one kernel"))
    yield Result("NumPy by sub-slices", value("sub-slices"), unit, "", None)
    yield Result("NumPy on the whole slice", value("slice"), unit, "the kernels", ratio("slice"))
    per_second = 1e6 / (SUB_SLICES * value("triplets"))
    yield Result("combinations of one thread", n_combinations * per_second, "combinations/s", "", None)
    yield Result("triplets of one thread", n_triplets * per_second, "triplets/s", "", None)


def summary(results: Sequence[Result]) -> dict[str, float | None]:
    """The main figures by the names of the report."""
    by_name = {result.name: result for result in results}
    return {
        "ratio": by_name["triplets"].ratio,
        "whole_slice_ratio": by_name["NumPy on the whole slice"].ratio,
        "common_ratio": by_name["common kernels"].ratio,
        "extension_ratio": by_name["common extension"].ratio,
        "combinations_per_second": by_name["combinations of one thread"].value,
        "triplets_per_second": by_name["triplets of one thread"].value,
    }


def layers_of(hits: NDArray[np.void], times: NDArray[np.int64]) -> Layers:
    """The hits of HIT[hits] in the inner three layers, by time."""
    of = sensors()[hits["sensor"]]
    places = pixel_positions(hits).astype(np.float32)
    found = []
    for layer in range(3):
        inside = np.flatnonzero((of["layer"] == layer) & (of["station"] == 0))
        inside = inside[np.argsort(times[inside], kind="stable")]
        found.append((times[inside], places[inside]))
    return found


def combinations(layers: Layers) -> int:
    """Products of the numbers of hits in the three layers, summed over frames."""
    frames = max(int(times.max()) for times, _ in layers) // FRAME_NS + 1
    counts = [np.bincount(times // FRAME_NS, minlength=frames) for times, _ in layers]
    return int((counts[0] * counts[1] * counts[2]).sum())


def _in_time(first: NDArray[np.int64], last: NDArray[np.int64], times: NDArray[np.int64]) -> NDArray[np.int64]:
    """Row of `first` and index of each time from `first` to `last`, i64[2, pairs]."""
    begin, end = np.searchsorted(times, first), np.searchsorted(times, last, "right")
    n = np.maximum(end - begin, 0)
    row = np.repeat(np.arange(len(first)), n)
    return np.stack([row, np.arange(len(row)) - np.repeat(np.cumsum(n) - n, n) + begin[row]])


def selected(layers: Layers) -> tuple[NDArray[np.int64], ...]:
    """Hits of layers 0, 1 and 2 of each triplet that passes the geometric cuts."""
    (t0, r0), (t1, r1), (t2, r2) = layers
    reach = HIT_WINDOW - 1
    i, j = _in_time(t0 - reach, t0 + reach, t1)
    first = r1[j] - r0[i]
    square = first[:, 0] ** 2 + first[:, 1] ** 2
    near = (square <= CUTS["max_xy01"] ** 2) & (np.abs(first[:, 2]) <= CUTS["max_z01"])
    i, j, first, square = i[near], j[near], first[near], square[near]
    row, k = _in_time(np.maximum(t0[i], t1[j]) - reach, np.minimum(t0[i], t1[j]) + reach, t2)
    second = r2[k] - r1[j[row]]
    square2 = second[:, 0] ** 2 + second[:, 1] ** 2
    residual = second[:, 2] - first[row, 2] * np.sqrt(square2 / square[row])
    near = (square2 <= CUTS["max_xy12"] ** 2) & (np.abs(second[:, 2]) <= CUTS["max_z12"])
    near &= np.abs(residual) <= CUTS["max_z_residual"]
    return i[row[near]], j[row[near]], k[near]


def triplets(layers: Layers) -> tuple[NDArray[np.int64], ...]:
    """The triplets whose fit passes the limits (processing/mu3e/tracks/triplet_fit.cuh)."""
    i, j, k = selected(layers)
    a, b, c = (layers[n][1][each].T for n, each in enumerate((i, j, k)))
    ab, bc, ac = b - a, c - b, c - a
    turn = ab[0] * bc[1] - ab[1] * bc[0]
    area = np.abs(turn)
    dot_c, dot_a = ac[0] * bc[0] + ac[1] * bc[1], ab[0] * ac[0] + ab[1] * ac[1]
    half1, half2 = np.arctan2(area, dot_c), np.arctan2(area, dot_a)
    chord1, chord2 = np.hypot(ab[0], ab[1]), np.hypot(bc[0], bc[1])
    with np.errstate(divide="ignore", invalid="ignore"):
        radius = chord1 * chord2 * np.hypot(ac[0], ac[1]) / (2.0 * area)
        arc1, arc2, z1, z2 = 2.0 * radius * half1, 2.0 * radius * half2, ab[2], bc[2]
        length1, length2 = arc1**2 + z1**2, arc2**2 + z2**2
        index1 = length1 / (arc1**2 * half1 * dot_c / area + z1**2)
        index2 = length2 / (arc2**2 * half2 * dot_a / area + z2**2)
        per1, per2 = 2.0 * half1 / np.sqrt(length1), 2.0 * half2 / np.sqrt(length2)
        slope1, slope2 = (1.0 - index1) * z1 / arc1, (1.0 - index2) * z2 / arc2
        arc, z = arc1 + arc2, z1 + z2
        square_sine = arc**2 / (arc**2 + z**2)
        eta = half1 * index1 * per1 + half2 * index2 * per2
        phi = -(half1 * index1 + half2 * index2)
        beta = slope2 * per2 - slope1 * per1
        theta = np.arctan2(arc2 * z1 - z2 * arc1, z1 * z2 + arc1 * arc2) - (slope2 - slope1)
        along = ab[:2] * dot_c + np.stack([-ab[1], ab[0]]) * turn
        radial = np.abs(along[0] * b[0] + along[1] * b[1]) / (np.hypot(*along) * np.hypot(b[0], b[1]))
        normal = np.maximum(radial * np.sqrt(square_sine), 0.2)
        angle = 2.0 * (half1 + half2)
        variance = ERRORS["scattering"] ** 2 * angle**2 / ((arc**2 + z**2) * normal)
        variance += ERRORS["hit_error"] ** 2 * (1 / chord1**2 + 1 / chord2**2 + (1 / chord1 + 1 / chord2) ** 2)
        fitted = -(eta * phi * square_sine + beta * theta) / (eta**2 * square_sine + beta**2)
        chi2 = ((phi + eta * fitted) ** 2 * square_sine + (theta + beta * fitted) ** 2) / variance
    momentum = fitted * MEV_PER_MM
    kept = chi2 <= LIMITS["max_chi2"]
    kept &= (momentum >= LIMITS["min_momentum"]) & (momentum <= LIMITS["max_momentum"])
    return i[kept], j[kept], k[kept]


def _microseconds(work: Callable[[], object]) -> float:
    before = time.process_time_ns()
    work()
    return (time.process_time_ns() - before) * 1e-3 / SUB_SLICES
