"""Jets of merged tracks in NumPy: a sequential search over a grid, float32 where a result depends on it."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from hltnode.processing.alice.geometry.slices import slice_angle
from hltnode.processing.alice.geometry.tpc_geometry import TpcGeometry

f = np.float32
N_ETA, N_PHI = 18, 64


@dataclass(frozen=True, slots=True)
class Jet:
    """Sums in units of 1/200 GeV/c."""

    pt: int
    background: int
    eta: float
    phi: float
    n_tracks: int


def directions(tracks: NDArray[np.void], geometry: TpcGeometry) -> NDArray[np.float64]:
    """Azimuth of each track at its closest place to the beam line, in double precision."""
    angle = np.array([slice_angle(np.array([int(number)]))[0] for number in tracks["slice"]])
    x, y = (tracks[name].astype(float) for name in ("x", "y"))
    place = (x + 1j * y) * np.exp(1j * angle)
    along = np.exp(1j * (angle + np.arcsin(tracks["sin_phi"].astype(float))))
    r2, z2 = x**2 + y**2, tracks["z"].astype(float) ** 2
    b0, second, fourth = geometry.as_floats()[160:163].astype(float)
    field = b0 * (1 + second * (z2 - r2 / 2) + fourth * (z2**2 - 3 * z2 * r2 + 0.375 * r2**2))
    k = -0.000299792458 * field * tracks["q_pt"].astype(float)
    # The centre lies to the left of a track with positive curvature; the direction is across the line to the centre.
    centre = place + 1j * along / np.where(k == 0, 1e-12, k)
    found: NDArray[np.float64] = np.angle(-1j * centre * np.sign(np.where(k == 0, 1e-12, k)))
    return found


def cells_of(tracks: NDArray[np.void], geometry: TpcGeometry) -> tuple[NDArray[np.int64], NDArray[np.float64]]:
    """The cell of each track, -1 outside; and its smallest distance to a border of cells, in cells."""
    eta = np.arcsinh(tracks["tan_lambda"].astype(float)) * 10
    phi = (directions(tracks, geometry) + np.pi) * N_PHI / (2 * np.pi)
    inside = np.abs(eta) < N_ETA // 2
    cells = (np.floor(eta).astype(int) + N_ETA // 2) * N_PHI + np.floor(phi).astype(int) % N_PHI
    distance = np.minimum(np.abs(eta - np.rint(eta)), np.abs(phi - np.rint(phi)))
    return np.where(inside, cells, -1), distance


def find_jets(
    tracks: NDArray[np.void],
    geometry: TpcGeometry,
    *,
    radius: float = 0.4,
    min_pt: float = 5.0,
    min_track_pt: float = 0.15,
    most: int = 16,
) -> tuple[list[Jet], bool]:
    """Jets of an event, highest first, and whether there are more."""
    pt = np.minimum(f(1) / np.maximum(np.abs(tracks["q_pt"]), f(0.02)), f(50)).astype(f)
    cells, _ = cells_of(tracks, geometry)
    taken = (pt >= f(min_track_pt)) & (cells >= 0)
    units = np.trunc(pt[taken] * f(200) + f(0.5)).astype(np.int64)
    sums = np.bincount(cells[taken], units, N_ETA * N_PHI).astype(np.int64)
    numbers = np.bincount(cells[taken], minlength=N_ETA * N_PHI)
    eta, phi = np.divmod(np.arange(N_ETA * N_PHI), N_PHI)
    across = np.abs(phi[:, None] - phi)
    across = np.minimum(across, N_PHI - across)
    # Centres at the border of a cone, as at 0.7, are inside or outside by the rounding of float32.
    along, across = f(0.1) * np.abs(eta[:, None] - eta).astype(f), f(0.09817477) * across.astype(f)
    near = across * across <= f(radius) * f(radius) - along * along
    share = f(sums.sum()) * (near.sum(axis=1).astype(f) * f(1 / (N_ETA * N_PHI)))
    background = np.trunc(share).astype(np.int64)
    found: list[Jet] = []
    while True:
        above = near @ sums - background
        best = int(np.argmax(above))
        if above[best] < max(int(f(min_pt) * f(200)), 1):
            return found, False
        if len(found) == most:
            return found, True
        cone = near[best]
        found.append(
            Jet(
                int(sums[cone].sum()),
                int(background[best]),
                (eta[best] + 0.5) / 10 - 0.9,
                (phi[best] + 0.5) * 2 * np.pi / N_PHI - np.pi,
                int(numbers[cone].sum()),
            )
        )
        sums[cone] = numbers[cone] = 0
