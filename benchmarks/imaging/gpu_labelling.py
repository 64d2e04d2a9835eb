"""Updates, conflicts and bytes of the labelling algorithms for GPUs, counted without a GPU, beside published
throughputs.

An update is the addition of features to a component; who makes one follows from the definition of each algorithm: each
pixel (naive), each run of a chunk of 64 pixels (HA4), each run (FLSL), or, with conflict detection, each component in
the pixels or runs of a warp. With U updates of a component, conflicts are estimated as sum(U^2) / sum(U) (A. Hennequin,
Performance optimization for the LHCb experiment, PhD thesis, Sorbonne Universite, 2022, section 4.4.4). Features on the
fly are left out: their updates depend on the order of threads.

The bound of the throughput is an ESTIMATE with two assumptions, each taken from one published value for a full image
(table 4.1, NVIDIA A100): updates of one component wait for each other, 3.0 ns each (naive), and all else takes the time
of 244 Gpix/s (FLSL). The other published values are not used.

Bytes are those that each kernel of a sequence must read and write at least: sectors of 32 bytes, each counted once for
reading and once for writing in a kernel. The floor is what every algorithm moves: the image once and the features of
each component once. The memory of a GPU bounds the throughput by its bytes a second / bytes a pixel.
"""

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray
from scipy import ndimage

from benchmarks.measure import Result
from hltnode.processing.imaging.components.collections import feature_columns
from hltnode.processing.imaging.gpu_labelling.collections import EDGE_CHUNK, pixel_edge, pixel_label
from hltnode.processing.imaging.gpu_labelling.ha4_64.ha4_64_label import ha4_64_label
from hltnode.processing.imaging.offline.simulation.shapes import full, random_cells

WIDTH, HEIGHT = 8192, 128
"""Full rows of the published images: updates for each pixel hardly depend on the number of rows."""
DENSITIES = tuple(percent / 100 for percent in range(0, 101, 10))
CHUNK = 64
WARP = 32
PUBLISHED: Mapping[str, Mapping[str, float]] = {
    "naive": {"g = 1": 0.966, "g = 4": 0.994, "g = 16": 0.985, "full": 0.337},
    "ha4_64": {"g = 1": 4.22, "g = 4": 13.2, "g = 16": 25.8, "full": 16.6},
    "ha4_64_cd": {"g = 1": 13.8, "g = 4": 23.9, "g = 16": 27.4, "full": 16.6},
    "flsl": {"g = 1": 4.85, "g = 4": 19.1, "g = 16": 61.9, "full": 244.0},
    "flsl_cd": {"g = 1": 24.5, "g = 4": 83.2, "g = 16": 170.0, "full": 244.0},
}
"""Gpix/s for 8192 x 8192 pixels, means over densities (table 4.1)."""
UPDATE_NS = 1 / PUBLISHED["naive"]["full"]
"""Of each pixel of a full image, all of which update one component."""
REST_NS = 1 / PUBLISHED["flsl"]["full"]
"""For each pixel; a full image has one update for a row."""
SECTOR = 32
"""Bytes that the memory of a GPU moves at once."""
FEATURE_BYTES = sum(column.dtype.itemsize * column.width for column in feature_columns)
A100_BYTES_PER_NS = 1555
"""Memory of the GPU of the published values (NVIDIA A100 40 GB, data sheet)."""
TARGET = 5.0
"""Least throughput of FLSL with conflict detection relative to HA4, g = 1."""


@dataclass(frozen=True, slots=True)
class Updates:
    """Updates of one image: their sum, the estimate of conflicts, and those of the component that has most."""

    total: int
    conflicts: float
    longest: int

    @classmethod
    def of(cls, counts: NDArray[np.integer[Any]]) -> "Updates":
        """counts: updates of each component."""
        counts = counts.astype(np.int64)
        total = int(counts.sum())
        return cls(total, float((counts * counts).sum() / total) if total else 0.0, int(counts.max(initial=0)))


def updates_of_image(image: NDArray[np.bool_]) -> dict[str, Updates]:
    """Updates by sequence; components are 4-connected."""
    labels, n = ndimage.label(image)
    padded = np.zeros((image.shape[0], image.shape[1] + 2), np.int8)
    padded[:, 1:-1] = image
    edges = np.diff(padded, axis=1)
    row, begin = np.nonzero(edges == 1)
    end = np.nonzero(edges == -1)[1]
    component = labels[row, begin].astype(np.int64) - 1

    pieces = (end - 1) // CHUNK - begin // CHUNK + 1
    run_of_piece = np.repeat(np.arange(len(row)), pieces)
    nth = np.arange(len(run_of_piece)) - np.repeat(np.cumsum(pieces) - pieces, pieces)
    chunk = row[run_of_piece] * (image.shape[1] // CHUNK + 1) + begin[run_of_piece] // CHUNK + nth
    runs_before = np.searchsorted(row, row)
    of_warp = row * (image.shape[1] // WARP + 1) + (np.arange(len(row)) - runs_before) // WARP

    def once_each(place: NDArray[np.integer[Any]], of: NDArray[np.int64]) -> NDArray[np.int64]:
        """The component of each pair of a place and a component."""
        pairs: NDArray[np.int64] = np.unique(place.astype(np.int64) * max(n, 1) + of)
        return np.remainder(pairs, max(n, 1), dtype=np.int64)

    updates = {
        "naive": labels[image].astype(np.int64) - 1,
        "ha4_64": component[run_of_piece],
        "ha4_64_cd": once_each(chunk, component[run_of_piece]),
        "flsl": component,
        "flsl_cd": once_each(of_warp, component),
    }
    return {name: Updates.of(np.bincount(of, minlength=n)) for name, of in updates.items()}


def bytes_of_image(image: NDArray[np.bool_]) -> dict[str, int]:
    """Bytes that the kernels of each sequence move at least for an image of 1 bit, features included; "floor": the
    least of any algorithm. Borders between parts, 64 rows of an image of any height, are left out."""
    height, width = image.shape
    labels, n = ndimage.label(image)
    bits, features = image.size // 8, n * FEATURE_BYTES
    before = np.zeros_like(image)
    before[:, 1:] = image[:, :-1]
    starts = image & ~before
    before[:, ::CHUNK] = False
    pieces = image & ~before
    places = np.arange(image.size).reshape(image.shape)
    first = ndimage.minimum(places, labels, np.arange(1, n + 1)) if n else np.zeros(0)
    is_first = np.isin(places, first) & image

    def sectors(which: NDArray[np.bool_]) -> int:
        """Bytes of the sectors of the label image that have one of these pixels."""
        per_sector = SECTOR // pixel_label.dtype.itemsize
        return SECTOR * len(np.unique(np.flatnonzero(which) // per_sector))

    # Counting and numbering read the image and the label of each run; numbering writes those of components.
    numbered = 2 * (bits + sectors(starts)) + sectors(is_first)
    strip = ha4_64_label.block_size // WARP
    at_border = np.zeros_like(image)
    at_border[strip::strip] = at_border[strip - 1 : height - 1 : strip] = True
    border = int(at_border[:, 0].sum()) * width // 8 + 2 * sectors(pieces & at_border)
    ha4 = bits + sectors(pieces) + border + numbered + bits + sectors(pieces) + 2 * features
    # Edges of runs lie row by row; each chunk of 32 pixels has a record.
    per_row = 2 * starts.sum(axis=1) * pixel_edge.dtype.itemsize
    edges = SECTOR * int((-(-per_row // SECTOR)).sum())
    chunks = image.size // WARP * EDGE_CHUNK.dtype.itemsize
    flsl = bits + sectors(starts) + edges + chunks + numbered + edges + sectors(starts) + 2 * features
    naive = bits + sectors(image) + numbered + bits + sectors(image) + 2 * features
    return {
        "naive": naive,
        **dict.fromkeys(("ha4_64", "ha4_64_cd"), ha4),
        **dict.fromkeys(("flsl", "flsl_cd"), flsl),
        "floor": bits + features,
    }


def run(_: Path) -> Iterator[Result]:
    """Updates, conflicts, bytes and the bound of the throughput for each granularity; the baseline is HA4."""
    for granularity in (1, 4, 16, None):
        case = "full" if granularity is None else f"g = {granularity}"
        images = (
            [full(WIDTH, HEIGHT)]
            if granularity is None
            else [random_cells(WIDTH, HEIGHT, density, granularity, (granularity,)) for density in DENSITIES]
        )
        found = [updates_of_image(image) for image in images]
        pixels = sum(image.size for image in images)
        moved = [bytes_of_image(image) for image in images]
        bytes_of = {name: sum(of[name] for of in moved) / pixels for name in moved[0]}
        bounds = {name: _bound([of[name] for of in found], pixels) for name in PUBLISHED}
        for name, published in PUBLISHED.items():
            target = TARGET if (case, name) == ("g = 1", "flsl_cd") else None
            yield Result(f"{case}, {name}", bounds[name], "Gpix/s", "ha4_64", bounds[name] / bounds["ha4_64"], target)
            yield Result(
                "  published", published[case], "Gpix/s", "ha4_64", published[case] / PUBLISHED["ha4_64"][case]
            )
            for what in ("total", "conflicts"):
                mine, other = (sum(getattr(of[it], what) for of in found) for it in (name, "ha4_64"))
                text = "updates" if what == "total" else what
                yield Result(f"  {text}", 1e3 * mine / pixels, "/kpixel", "ha4_64", mine / other if other else None)
            share = bytes_of["floor"] / bytes_of[name]
            yield Result("  bytes", 1e3 * bytes_of[name], "/kpixel", "share of the floor", share)
            yield Result("  memory of an A100", A100_BYTES_PER_NS / bytes_of[name], "Gpix/s", "", None)
        yield Result(f"{case}, floor", 1e3 * bytes_of["floor"], "bytes/kpixel", "", None)


def _bound(updates: Sequence[Updates], pixels: int) -> float:
    """Pixels for each ns: the image waits for its longest queue of updates, or for all else."""
    each = pixels / len(updates)
    return pixels / sum(max(of.longest * UPDATE_NS, each * REST_NS) for of in updates)


def summary(results: Sequence[Result]) -> dict[str, dict[str, float | None]]:
    """For FLSL with conflict detection, by granularity: the ratio of its bound to that of HA4, its bytes for a pixel,
    and the share of the floor in them."""
    found: dict[str, dict[str, float | None]] = {}
    of: dict[str, float | None] = {}
    for result in results:
        case, _, name = result.name.partition(", ")
        if name:
            of = {}
        if name == "flsl_cd":
            of = found[case.replace(" = ", "")] = {"ratio_ha4": result.ratio}
        elif of and result.name == "  bytes":
            of |= {"bytes_per_pixel": result.value / 1e3, "floor_share": result.ratio}
    return found
