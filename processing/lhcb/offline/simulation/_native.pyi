"""Types of the extension module built from processing/lhcb/offline/simulation/native.cpp."""

import numpy as np
from numpy.typing import NDArray

def advance(
    x: NDArray[np.float64],
    y: NDArray[np.float64],
    z: NDArray[np.float64],
    tx: NDArray[np.float64],
    ty: NDArray[np.float64],
    p: NDArray[np.float64],
    charge: NDArray[np.float64],
    z_end: NDArray[np.float64],
    moving: NDArray[np.bool_],
    there: NDArray[np.int64],
    field: NDArray[np.float32],
    grid_step: float,
    first_z: float,
    last_z: float,
    mev_per_tesla_mm: float,
    steepest: float,
) -> int: ...
def share(
    centre: NDArray[np.float64],
    width: NDArray[np.float64],
    charge: NDArray[np.float64],
    n_channels: int,
    least: float,
) -> tuple[NDArray[np.int64], NDArray[np.int64], NDArray[np.float64]]: ...
def cluster(
    order: NDArray[np.int64],
    sorted: NDArray[np.int64],
    charge: NDArray[np.float64],
    threshold: float,
    seed: float,
    total: float,
    longest: int,
) -> tuple[
    NDArray[np.int64],
    NDArray[np.int64],
    NDArray[np.float64],
    NDArray[np.float64],
    NDArray[np.float64],
    NDArray[np.int64],
]: ...
def crossings(
    lines: NDArray[np.float64],
    z: NDArray[np.float64],
    to_x: NDArray[np.float64],
    to_y: NDArray[np.float64],
    half_length: float,
    half_width: float,
) -> tuple[NDArray[np.int64], NDArray[np.int64], NDArray[np.float64]]: ...
