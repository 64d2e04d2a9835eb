"""The chain `ccl` with one thread against other programs that label images: processor time on random images of 2048 x
2048 pixels of 1 bit, 8-connected, means over densities of 10 to 90 percent.

And against the algorithms of A. Hennequin's thesis (sequence `cpu_labelling`), in cycles for a pixel beside those that
it reports. And the sequence `large_images` with two threads against one (`ccl_threads`).

The chain starts from packed strips and finds runs, labels and features (of at most 4096 components); the peers start
from arrays of bytes, and only OpenCV's "WithStats" finds features.
"""

import re
from collections.abc import Iterator, Sequence
from functools import partial
from pathlib import Path

import numpy as np

from benchmarks.imaging import ccl_node, ccl_threads, sparse_ccl
from benchmarks.imaging.ccl_peers import peers
from benchmarks.measure import Result, compare, in_turn
from benchmarks.profile import ProfiledSequence
from benchmarks.readout.node_beside_kernels import ratios
from hltnode.processing.framework.backends.kernel_library import KernelLibrary
from hltnode.processing.framework.limits import BatchLimits
from hltnode.processing.framework.offline_runner import EncodedMep, encode_mep
from hltnode.processing.imaging.chain import CHAIN
from hltnode.processing.imaging.cpu_labelling.collections import Method
from hltnode.processing.imaging.cpu_labelling.label_image import label_image
from hltnode.processing.imaging.offline.simulation.shapes import random_cells
from hltnode.processing.imaging.strips import encode_image
from hltnode.processing.selection.configuration.overrides import Override

SIDE = 2048
DENSITIES = tuple(percent / 100 for percent in range(10, 100, 10))
GRANULARITIES = (1, 4, 16)
LIMITS = BatchLimits(events=16, input_bytes=8 << 20)
TURNS = 3
TARGETS = {
    (1, "scipy"): 3.0,
    (4, "scipy"): 3.0,
    **{(g, peer): 1.3 for g in (1, 4) for peer in ("opencv", "opencv_with_stats", "cc3d")},
    (1, "rosenfeld_dt"): 2.5,
    (4, "rosenfeld_dt"): 1.6,
}
"""Least speed of the whole chain relative to a peer, by granularity."""
WIDTHS_TARGET = 1.5
"""Least speed of lanes of 512 bits relative to 128, on a machine with AVX-512."""
PUBLISHED = {
    Method.LSL_STD: {1: 10.47, 4: 5.91},
    Method.LSL_RLE: {1: 16.96, 4: 6.05},
    Method.ROSENFELD: {1: 30.61, 4: 12.49},
    Method.ROSENFELD_DT: {1: 20.01, 4: 8.30},
    Method.SIMD_V1_128: {1: 16.40, 4: 11.33},
    Method.SIMD_V1_256: {1: 10.65, 4: 7.08},
    Method.SIMD_V1_512: {1: 7.61, 4: 5.06},
    Method.SIMD_V2_128: {1: 17.89, 4: 11.89},
    Method.SIMD_V2_256: {1: 11.54, 4: 7.35},
    Method.SIMD_V2_512: {1: 7.97, 4: 5.26},
}
"""Cycles for a pixel of one core of a Xeon Gold 6126 at 2.6 GHz (thesis, table 4.2), by granularity."""
LABELLING = ("ccl_find_runs", "ccl_label_runs")


def run(shared: Path) -> Iterator[Result]:
    """Measure each granularity: medians over the turns."""
    ours = ProfiledSequence(None, None, LIMITS, chain=CHAIN)
    rosenfeld = _labelling_by(Method.ROSENFELD_DT)
    for granularity in GRANULARITIES:
        images = [random_cells(SIDE, SIDE, density, granularity, (granularity,)) for density in DENSITIES]
        meps = [encode_mep(CHAIN, [encode_image(image) for image in images])]
        of_bytes = [image.view(np.uint8) for image in images]
        compared = list(peers(of_bytes))
        measures = [partial(peer.throughput, of_bytes) for peer in compared]
        own, *others = in_turn([partial(ours.throughput, meps), *measures, partial(rosenfeld.throughput, meps)], TURNS)
        names = [(peer.key, peer.name) for peer in compared]
        names.append(("rosenfeld_dt", "own Rosenfeld with decision tree"))
        for (key, name), taken in zip(names, others, strict=True):
            against = compare(taken, own)
            yield Result(
                f"g = {granularity}, {key}",
                against.first.cpu_us,
                "us/image",
                name,
                against.cpu_ratio,
                TARGETS.get((granularity, key)),
            )
        yield Result("  whole chain", against.second.cpu_us, "us/image", "", None)
        kernels = ours.microseconds_per_kernel(meps)
        whole = sum(kernels.values())
        for kernel, microseconds in sorted(kernels.items(), key=lambda item: -item[1]):
            yield Result(f"  {kernel}", microseconds, "us/image", "all kernels", microseconds / whole)
        yield from _cycles(granularity, sum(kernels[name] for name in LABELLING), meps)
    yield from ccl_threads.run(GRANULARITIES)
    yield from sparse_ccl.run(shared)
    yield from ccl_node.run()


def _labelling_by(method: Method) -> ProfiledSequence:
    override = Override(label_image.name, "method", int(method))
    return ProfiledSequence("cpu_labelling", None, LIMITS, overrides=(override,), chain=CHAIN)


def _cycles(granularity: int, labels_us: float, meps: list[EncodedMep]) -> Iterator[Result]:
    """Cycles for a pixel of the labels alone, ours and those of each method; the ratio is published / measured."""
    mhz = nominal_mhz()
    if mhz is None:
        return
    per_pixel = mhz / SIDE**2
    yield Result(f"g = {granularity}, cycles", labels_us * per_pixel, "cycles/pixel", "", None)
    taken: dict[Method, float] = {}
    for method in Method if granularity in (1, 4) else ():
        sequence = _labelling_by(method)
        taken[method] = min(sequence.microseconds_per_kernel(meps)[label_image.name] for _ in range(2))
        cycles = taken[method] * per_pixel
        published = PUBLISHED.get(method, {}).get(granularity)
        baseline = "" if published is None else f"published {published:.2f}"
        ratio = None if published is None else published / cycles
        yield Result(f"  {method.name.lower()}", cycles, "cycles/pixel", baseline, ratio)
    if taken and "avx512" in instruction_sets():
        for narrow, wide in ((Method.SIMD_V1_128, Method.SIMD_V1_512), (Method.SIMD_V2_128, Method.SIMD_V2_512)):
            ratio = taken[narrow] / taken[wide]
            yield Result(f"  {wide.name.lower()}", taken[wide], "us/image", narrow.name.lower(), ratio, WIDTHS_TARGET)


def instruction_sets() -> tuple[str, ...]:
    """The instruction sets of this machine for which there are kernels."""
    return tuple(KernelLibrary(CHAIN.kernels).targets)


def nominal_mhz() -> float | None:
    """The clock that the processor reports; None if it reports none."""
    found = re.search(r"^cpu MHz\s*:\s*([\d.]+)", Path("/proc/cpuinfo").read_text(), re.MULTILINE)
    return None if found is None else float(found[1])


def summary(results: Sequence[Result]) -> dict[str, object]:
    """By granularity: the ratios to the peers, None for one that is missing, and cycles for a pixel. And the speed of
    the row table relative to the dense sequence, and the time of a node relative to its kernels."""
    found: dict[str, dict[str, float | None]] = {}
    for result in results:
        if result.name.startswith("g = "):
            granularity, _, what = result.name.removeprefix("g = ").partition(", ")
            figures = found.setdefault(f"g{granularity}", {"ratio_opencv": None, "ratio_cc3d": None})
            if what == "cycles":
                figures["cycles_per_pixel"] = result.value
            else:
                name = "two_threads" if what == "large_images, two threads" else what
                figures[f"ratio_{name}"] = result.ratio
    return {
        **found,
        "sparse_ratio": sparse_ccl.sparse_ratio(results),
        "node_ratio": max(ratios(results).values(), default=None),
    }
