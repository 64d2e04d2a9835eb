"""The labelling sequences of the chain `ccl` on a GPU beside CuPy's `cupyx.scipy.ndimage.label`.

Both begin with an image of 1 bit in the memory of the GPU: packed strips for the chain, a byte for each pixel for CuPy.
The time of a sequence is that of its kernels, features and lines included. CuPy makes labels alone, timed by its own
profiler. Times are means over densities.
"""

import importlib
import statistics
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from benchmarks.gpu.kernel_times import measure
from benchmarks.gpu.report import Section
from benchmarks.gpu.samples import fill, limits_of
from hltnode.processing.framework.backends.cuda import CudaBackend
from hltnode.processing.framework.offline_runner import EncodedMep, encode_mep
from hltnode.processing.framework.workspace import Workspace
from hltnode.processing.imaging.chain import CHAIN
from hltnode.processing.imaging.components.collections import all_component_count
from hltnode.processing.imaging.gpu_labelling.sequences import GPU_SEQUENCES
from hltnode.processing.imaging.offline.simulation.shapes import full, random_cells
from hltnode.processing.imaging.strips import encode_image

SIDE = 8192
DENSITIES = (0.2, 0.5, 0.8)
GRANULARITIES = (1, 4, 16)
SEQUENCES = ("large_images", *GPU_SEQUENCES)
RUNS = 5
TARGET = 2.0
"""Least speed of FLSL with conflict detection relative to CuPy."""
JUDGED = "flsl_cd"

Images = Mapping[str, Sequence[NDArray[np.bool_]]]
"""Images by the name of their kind."""


@dataclass(frozen=True, slots=True)
class Labelled:
    """Seconds for one image, and the number of its components."""

    seconds: float
    components: int


def images(side: int = SIDE) -> dict[str, list[NDArray[np.bool_]]]:
    """Random cells of each granularity with every density, and the full image."""
    found = {
        f"g = {granularity}": [random_cells(side, side, density, granularity, (granularity,)) for density in DENSITIES]
        for granularity in GRANULARITIES
    }
    return {**found, "full": [full(side, side)]}


def connects_corners(sequence: str) -> bool:
    """Whether a sequence is 8-connected by default."""
    return any(
        constant.name == "diagonal" and constant.value != 0
        for algorithm in CHAIN.sequences[sequence].algorithms
        for constant in algorithm.constants
    )


def label_by_sequence(backend: CudaBackend, sequence: str, of: Images, runs: int) -> dict[str, list[Labelled]]:
    """Every image through a sequence. All images have one size."""
    meps = {kind: [encode_mep(CHAIN, [encode_image(image)]) for image in some] for kind, some in of.items()}
    chain = CHAIN.with_sequence(sequence)
    engine = CHAIN.create_engine(
        backend,
        chain.load_geometry(None),
        CHAIN.load_trigger(None, sequence),
        limits_of(next(iter(meps.values()))[0], 1),
        retain=(all_component_count.name,),
    )
    workspace = engine.create_workspace()

    found = {kind: [_label(workspace, mep, runs) for mep in some] for kind, some in meps.items()}
    del workspace
    engine.close()
    return found


def _label(workspace: Workspace, mep: EncodedMep, runs: int) -> Labelled:
    fill(workspace, [mep])
    seconds = sum(measure(workspace, runs).values())
    return Labelled(seconds, int(workspace.fetch(all_component_count.name)[0]))


def label_by_cupy(backend: CudaBackend, of: Images, *, corners: bool, runs: int) -> dict[str, list[Labelled]]:
    """Every image through CuPy."""
    ndimage = importlib.import_module("cupyx.scipy.ndimage")
    profiler = importlib.import_module("cupyx.profiler")
    structure = np.ones((3, 3), np.bool_) if corners else None

    def label(cupy: Any, image: NDArray[np.bool_]) -> Labelled:
        arguments = (cupy.asarray(image), structure)
        times = profiler.benchmark(
            ndimage.label, arguments, n_repeat=runs, n_warmup=1, devices=(backend.device.ordinal,)
        )
        return Labelled(statistics.median(times.gpu_times[0].tolist()), int(ndimage.label(*arguments)[1]))

    with backend.device.calls("label images with CuPy") as cupy:
        return {kind: [label(cupy, image) for image in some] for kind, some in of.items()}


def beside_cupy(
    make_backend: Callable[[], CudaBackend],
    of: Images | None = None,
    sequences: Sequence[str] = SEQUENCES,
    runs: int = RUNS,
) -> Section:
    """Every sequence beside CuPy with the same connectivity. It passes if both find the same number of components in
    each image."""
    compared = of if of is not None else images()
    cupy = {corners: label_by_cupy(make_backend(), compared, corners=corners, runs=runs) for corners in (True, False)}
    rows: list[tuple[str, ...]] = []
    data: dict[str, dict[str, dict[str, float]]] = {}
    wrong: list[str] = []
    for sequence in sequences:
        corners = connects_corners(sequence)
        ours = label_by_sequence(make_backend(), sequence, compared, runs)
        data[sequence] = {}
        for kind, some in compared.items():
            theirs = cupy[corners][kind]
            if [one.components for one in ours[kind]] != [one.components for one in theirs]:
                wrong.append(f"{sequence}, {kind}")
            own, other = (statistics.fmean(one.seconds for one in labelled) for labelled in (ours[kind], theirs))
            pixels_per_ns = some[0].size / own / 1e9
            data[sequence][kind] = {"seconds": own, "cupy": other, "ratio": other / own, "corners": corners}
            figures = (f"{1e3 * own:,.3f}", f"{pixels_per_ns:,.2f}", f"{1e3 * other:,.3f}", f"{other / own:.2f}")
            rows.append((sequence, kind, "8" if corners else "4", *figures))
    text = f"Images of {next(iter(compared.values()))[0].shape[::-1]} pixels. Target for {JUDGED}: {TARGET} times CuPy."
    return Section(
        title="Labelling beside CuPy",
        good=not wrong,
        text=f"{text} Other numbers of components: {'; '.join(wrong) or 'none'}.",
        header=("sequence", "image", "connected", "ms", "Gpix/s", "cupyx.scipy.ndimage.label, ms", "ratio"),
        rows=rows,
        data=data,
    )
