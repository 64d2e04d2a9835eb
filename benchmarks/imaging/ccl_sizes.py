"""Time of the chain `ccl` over the size of images: the asymptotic rate r_inf and the size n_half of half that rate.

R. W. Hockney and C. R. Jesshope, Parallel Computers (1981): the time for n pixels is (n + n_half) / r_inf. Processor
time of the kernels of one thread, random cells of 4 pixels with half of them foreground, 8-connected.
"""

from collections.abc import Iterator, Sequence
from pathlib import Path

import numpy as np

from benchmarks.measure import Result
from benchmarks.profile import ProfiledSequence
from hltnode.processing.framework.limits import BatchLimits
from hltnode.processing.framework.offline_runner import encode_mep
from hltnode.processing.imaging.chain import CHAIN
from hltnode.processing.imaging.offline.simulation.shapes import random_cells
from hltnode.processing.imaging.strips import encode_image

SEQUENCES = ("whole_images", "large_images")
SIDES = (32, 64, 128, 256, 512, 1024, 2048)
GRANULARITY, DENSITY = 4, 0.5
PIXELS = 1 << 24
"""Pixels of all images of a size in one measurement."""
LIMITS = BatchLimits(events=16, input_bytes=9 << 20)
IMAGES = 4
TURNS = 5


def run(_: Path) -> Iterator[Result]:
    """The rate at each size, then the two numbers of the fit, for each sequence. Medians over the turns."""
    for name in SEQUENCES:
        sequence = ProfiledSequence(name, None, LIMITS, chain=CHAIN)
        times: list[list[float]] = [[] for _ in SIDES]
        meps = {}
        for side in SIDES:
            images = [random_cells(side, side, DENSITY, GRANULARITY, (side, number)) for number in range(IMAGES)]
            meps[side] = encode_mep(CHAIN.with_sequence(name), [encode_image(image) for image in images])
        for _turn in range(TURNS):
            for of_side, (side, mep) in zip(times, meps.items(), strict=True):
                taken = sequence.microseconds_per_kernel([mep] * max(1, PIXELS // (IMAGES * side * side)))
                of_side.append(sum(us for kernel, us in taken.items() if kernel.startswith("ccl_")))
        medians = [float(np.median(of_side)) for of_side in times]
        for side, microseconds in zip(SIDES, medians, strict=True):
            yield Result(f"{name}, {side} x {side}", side * side / microseconds, "pixels/us", "", None)
        rate, half = rate_and_half_size([side * side for side in SIDES], medians)
        yield Result(f"{name}, r_inf", rate, "pixels/us", "", None)
        yield Result(f"{name}, n_half", half, "pixels", "", None)


def rate_and_half_size(sizes: Sequence[int], times: Sequence[float]) -> tuple[float, float]:
    """r_inf in units of size per time and n_half of the fit time = (n + n_half) / r_inf.

    Each time has the same relative weight. Raises ValueError for less than two sizes.
    """
    if len(set(sizes)) < 2:
        raise ValueError(f"a fit needs two sizes, there are {sorted(set(sizes))}")
    slope, offset = np.polyfit(np.array(sizes, np.float64), np.array(times), 1, w=1.0 / np.array(times))
    return float(1.0 / slope), float(offset / slope)


def summary(results: Sequence[Result]) -> dict[str, dict[str, float]]:
    """By sequence: r_inf in pixels per microsecond, n_half in pixels."""
    found: dict[str, dict[str, float]] = {}
    for result in results:
        name, _, what = result.name.partition(", ")
        if what in ("r_inf", "n_half"):
            found.setdefault(name, {})[what] = result.value
    return found
