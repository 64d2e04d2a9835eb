"""Links by the search in linear time that D. Rohr rejected, in plain Python: a second opinion on the chosen search.

D. Rohr, "ALICE TPC Online Tracking on GPU based on Kalman Filter", diploma thesis, Heidelberg, 2010, section 6.2.1.2.
"""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import NDArray

from hltnode.processing.alice.geometry.tpc_geometry import TpcGeometry
from hltnode.processing.alice.tpc.collections import MAX_WINDOW
from hltnode.processing.alice.tpc.seeds.find_neighbours import find_neighbours
from hltnode.protocol.alice.tpc_banks import CLUSTER, N_ROWS, places_of_clusters
from tests.processing.alice.track_oracle import NONE

CONSTANTS = {each.name: float(each.value) for each in find_neighbours.constants}


def linear_links(
    places: list[NDArray[np.uint32]], geometry: TpcGeometry
) -> tuple[list[NDArray[np.uint16]], list[NDArray[np.uint16]]]:
    """Number in its row of the neighbour above and below of each cluster, by rows; NONE without one.

    places: for each row u32 z << 16 | y. The windows are those of the chosen search, with as many clusters at most. The
    neighbours below come by ascending z, those above by descending z. Each step takes the next one of the side whose
    pair then has the smaller change of slope: n + m steps for n and m neighbours. The best pair of the walk is kept.
    """
    rows = [_places_of_row(of_row) for of_row in places]
    up = [np.full(len(of_row), NONE, np.uint16) for of_row in places]
    down = [np.full(len(of_row), NONE, np.uint16) for of_row in places]
    for row in range(2, N_ROWS - 2):
        if not all(len(places[row + step]) for step in (-2, 0, 2)):
            continue
        sides = [
            _neighbours(rows[row], rows[other], float(geometry.row_x[row]), float(geometry.row_x[other]))
            for other in (row - 2, row + 2)
        ]
        for i, (below, above) in enumerate(zip(*sides, strict=True)):
            found = _best_of_walk(below, above)
            if found is not None:
                down[row][i], up[row][i] = found
    return up, down


def _places_of_row(packed: NDArray[np.uint32]) -> NDArray[np.float64]:
    clusters = np.zeros(len(packed), CLUSTER)
    clusters["y"], clusters["z"] = packed & 0xFFFF, packed >> 16
    return np.column_stack(places_of_clusters(clusters))


def _neighbours(
    own: NDArray[np.float64], other: NDArray[np.float64], x: float, other_x: float
) -> list[list[tuple[int, float, float]]]:
    """For each cluster of a row those of another one in its window, by ascending z: number, slopes in y and z."""
    order = np.lexsort((other[:, 0], other[:, 1]))
    ascending = other[order]
    dx = other_x - x
    half_y, half_z = (CONSTANTS[name] * abs(dx) + CONSTANTS["margin"] for name in ("slope_y", "slope_z"))
    centre = own * (other_x / x)
    first = np.searchsorted(ascending[:, 1], centre[:, 1] - half_z, "left")
    last = np.searchsorted(ascending[:, 1], centre[:, 1] + half_z, "right")
    found = []
    for i in range(len(own)):
        near = np.arange(first[i], last[i])
        near = near[np.abs(ascending[near, 0] - centre[i, 0]) <= half_y]
        slopes = (ascending[near] - own[i]) / dx
        found.append(list(zip(order[near].tolist(), slopes[:, 0].tolist(), slopes[:, 1].tolist(), strict=True)))
    return found


def change_of(below: tuple[int, float, float], above: tuple[int, float, float]) -> float:
    """The square of the change of the slope at a cluster between two neighbours."""
    return (above[1] - below[1]) ** 2 + (above[2] - below[2]) ** 2


def _best_of_walk(below: list[Any], above: list[Any]) -> tuple[int, int] | None:
    """Numbers of the neighbours below and above, or None."""
    if not below or not above or max(len(below), len(above)) > MAX_WINDOW:
        return None
    i, k = 0, len(above) - 1
    best, found = CONSTANTS["max_slope_change"] ** 2, None
    change = change_of(below[i], above[k])
    while True:
        if change < best:
            best, found = change, (below[i][0], above[k][0])
        steps = []
        if i + 1 < len(below):
            steps.append((change_of(below[i + 1], above[k]), i + 1, k))
        if k > 0:
            steps.append((change_of(below[i], above[k - 1]), i, k - 1))
        if not steps:
            return found
        change, i, k = min(steps)
