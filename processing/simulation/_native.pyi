"""Types of the extension module built from processing/simulation/native.cpp."""

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
    alive: NDArray[np.bool_],
    there: NDArray[np.int64],
    field: NDArray[np.float32],
    grid_step: float,
    first_z: float,
    last_z: float,
    mev_per_tesla_mm: float,
    steepest: float,
) -> int: ...
def cluster(
    order: NDArray[np.int64],
    sorted: NDArray[np.int64],
    charge: NDArray[np.float64],
    threshold: float,
    seed: float,
    total: float,
    first: NDArray[np.int64],
    size: NDArray[np.int64],
    cluster_charge: NDArray[np.float64],
    position: NDArray[np.float64],
    channel_charge: NDArray[np.float64],
    of_deposit: NDArray[np.int64],
) -> tuple[int, int]: ...
