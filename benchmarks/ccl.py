"""The chain `ccl` with one thread against `scipy.ndimage.label`: processor time on random images of 2048 x 2048 pixels
of 1 bit, 8-connected, means over densities of 10 to 90 percent.

And the sequence `large_images` with two threads against one: wall clock for images of 8192 x 8192 pixels, one in a
batch.

The kernels start from packed strips and find runs, labels and features (of at most 4096 components); SciPy starts from
an array of bytes and finds labels.
"""

from collections.abc import Iterator, Sequence
from functools import partial
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray
from scipy import ndimage

from benchmarks.measure import Result, Stopwatch, Throughput, compare, in_turn
from benchmarks.profile import ProfiledSequence
from hltnode.processing.framework.limits import BatchLimits
from hltnode.processing.framework.offline_runner import encode_mep
from hltnode.processing.imaging.chain import CHAIN
from hltnode.processing.imaging.offline.simulation.shapes import random_cells
from hltnode.processing.imaging.strips import encode_image

SIDE = 2048
DENSITIES = tuple(percent / 100 for percent in range(10, 100, 10))
GRANULARITIES = (1, 4, 16)
LIMITS = BatchLimits(events=16, input_bytes=8 << 20)
EIGHT_CONNECTED = np.ones((3, 3), np.int8)
TURNS = 5
TARGET = 3.0
"""Least speed of the whole chain relative to SciPy."""
LARGE_SIDE = 8192
LARGE_DENSITIES = (0.2, 0.5, 0.8)
LARGE_LIMITS = BatchLimits(events=1, input_bytes=9 << 20)
TWO_THREADS_TARGET = 1.8
"""Least speed of two threads relative to one."""


def run(_: Path) -> Iterator[Result]:
    """Measure each granularity: medians over the turns."""
    profiled = ProfiledSequence(None, None, LIMITS, chain=CHAIN)
    for granularity in GRANULARITIES:
        images = [random_cells(SIDE, SIDE, density, granularity, (granularity,)) for density in DENSITIES]
        meps = [encode_mep(CHAIN, [encode_image(image) for image in images])]
        taken = in_turn([partial(labelled_by_scipy, images), partial(profiled.throughput, meps)], TURNS)
        against = compare(*taken)
        yield Result(
            f"g = {granularity}, whole chain", against.second.cpu_us, "us/image", "scipy", against.cpu_ratio, TARGET
        )
        yield Result("  scipy.ndimage.label", against.first.cpu_us, "us/image", "scipy", 1.0)
        kernels = profiled.microseconds_per_kernel(meps)
        whole = sum(kernels.values())
        for kernel, microseconds in sorted(kernels.items(), key=lambda item: -item[1]):
            yield Result(f"  {kernel}", microseconds, "us/image", "all kernels", microseconds / whole)
    yield from _two_threads()


def _two_threads() -> Iterator[Result]:
    """Both numbers of threads on the same images, one image in a batch: threads can only share an image."""
    one, two = (
        ProfiledSequence("large_images", None, LARGE_LIMITS, threads=threads, chain=CHAIN) for threads in (1, 2)
    )
    for granularity in GRANULARITIES:
        images = [
            random_cells(LARGE_SIDE, LARGE_SIDE, density, granularity, (granularity,)) for density in LARGE_DENSITIES
        ]
        meps = [encode_mep(CHAIN, [encode_image(image)]) for image in images]
        taken = in_turn([partial(one.throughput, meps), partial(two.throughput, meps)], TURNS)
        against = compare(*taken)
        yield Result(
            f"g = {granularity}, large_images, two threads",
            against.second.per_second,
            "images/s",
            "one thread",
            against.ratio,
            TWO_THREADS_TARGET,
        )


def summary(results: Sequence[Result]) -> dict[str, dict[str, float | None]]:
    """The ratios by granularity."""
    found: dict[str, dict[str, float | None]] = {}
    for result in results:
        if result.name.startswith("g = "):
            granularity, _, what = result.name.removeprefix("g = ").partition(", ")
            name = "ratio_scipy" if what == "whole chain" else "ratio_two_threads"
            found.setdefault(f"g{granularity}", {})[name] = result.ratio
    return found


def labelled_by_scipy(images: Sequence[NDArray[Any]]) -> Throughput:
    """Label all images."""
    watch = Stopwatch()
    for image in images:
        ndimage.label(image, EIGHT_CONNECTED)
    return watch.throughput(len(images))
