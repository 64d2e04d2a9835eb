"""Impact parameter of a track by slow and simple code: matrices, double precision (docs/physics/impact-
parameter.md)."""

from __future__ import annotations

from collections.abc import Mapping

import numpy as np
from numpy.typing import NDArray


def impact_parameter(state: Mapping[str, float], vertices: NDArray[np.void]) -> tuple[int, float, float]:
    """(index of the vertex with the smallest IP, IP in mm, IP chi2) of a state at the beam line."""
    slopes = np.array([state["tx"], state["ty"]])
    distances = []
    for vertex in vertices:
        dz = float(vertex["z"]) - state["z"]
        point = np.array([state["x"], state["y"]]) + dz * slopes
        distances.append(point - np.array([float(vertex["x"]), float(vertex["y"])]))
    ips = [float(np.sqrt(distance @ distance / (1.0 + slopes @ slopes))) for distance in distances]
    nearest = int(np.argmin(ips))
    vertex = vertices[nearest]
    dz = float(vertex["z"]) - state["z"]
    of_track = (state["c00"] + dz * dz * state["c22"] + 2.0 * dz * state["c20"]) * np.eye(2)
    covariance = np.array(
        [
            [vertex["c00"], vertex["c10"], vertex["c20"]],
            [vertex["c10"], vertex["c11"], vertex["c21"]],
            [vertex["c20"], vertex["c21"], vertex["c22"]],
        ],
        dtype=np.float64,
    )
    # d = track at the z of the vertex - vertex: a shift of the vertex in z moves the track by its slope.
    projection = np.array([[-1.0, 0.0, slopes[0]], [0.0, -1.0, slopes[1]]])
    total = of_track + projection @ covariance @ projection.T
    distance = distances[nearest]
    return nearest, ips[nearest], float(distance @ np.linalg.solve(total, distance))
