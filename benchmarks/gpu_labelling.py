"""Updates and conflicts of the labelling algorithms for GPUs, counted without a GPU, beside published throughputs.

An update is the addition of features to a component; who makes one follows from the definition of each algorithm: each
pixel (naive), each run of a chunk of 64 pixels (HA4), each run (FLSL), or, with conflict detection, each component in
the pixels or runs of a warp. With U updates of a component, conflicts are estimated as sum(U^2) / sum(U) (A. Hennequin,
Performance optimization for the LHCb experiment, PhD thesis, Sorbonne Universite, 2022, section 4.4.4). Features on the
fly are left out: their updates depend on the order of threads.

The bound of the throughput is an ESTIMATE with two assumptions, each taken from one published value for a full image
(table 4.1, NVIDIA A100): updates of one component wait for each other, 3.0 ns each (naive), and all else takes the time
of 244 Gpix/s (FLSL). The other published values are not used.
"""

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray
from scipy import ndimage

from benchmarks.measure import Result
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


def run(_: Path) -> Iterator[Result]:
    """Updates, conflicts and the bound of the throughput for each granularity; the baseline is HA4."""
    for granularity in (1, 4, 16, None):
        case = "full" if granularity is None else f"g = {granularity}"
        images = (
            [full(WIDTH, HEIGHT)]
            if granularity is None
            else [random_cells(WIDTH, HEIGHT, density, granularity, (granularity,)) for density in DENSITIES]
        )
        found = [updates_of_image(image) for image in images]
        pixels = sum(image.size for image in images)
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


def _bound(updates: Sequence[Updates], pixels: int) -> float:
    """Pixels for each ns: the image waits for its longest queue of updates, or for all else."""
    each = pixels / len(updates)
    return pixels / sum(max(of.longest * UPDATE_NS, each * REST_NS) for of in updates)


def summary(results: Sequence[Result]) -> dict[str, dict[str, float | None]]:
    """Ratios of FLSL with conflict detection to HA4, estimated, by granularity."""
    return {
        result.name.partition(",")[0].replace(" = ", ""): {"ratio_ha4": result.ratio}
        for result in results
        if result.name.endswith(", flsl_cd")
    }
