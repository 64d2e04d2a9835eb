"""Rings by the Hough transform of scikit-image: a search that shares no code and no idea with the kernels."""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray
from scipy.ndimage import gaussian_filter
from skimage.transform import hough_circle

from hltnode.processing.na62.rich.collections import MAX_RINGS, RING
from tests.processing.na62.ring_oracle import CUTS, Floats, algebraic_fit

PIXEL = 9.0
"""mm: half of the distance of two tubes."""
HALF_SIZE = 34
"""Pixels from the centre of the image to its edge; tubes are within 300 mm."""
RADII = np.arange(int(CUTS["min_radius"] // PIXEL), int(CUTS["max_radius"] // PIXEL) + 2)
"""Pixels."""


def hough_peak(x: Floats, y: Floats) -> tuple[float, float, float]:
    """Centre and radius of the most votes, in mm, to half a pixel.

    A tube is two pixels wide, so votes are spread over neighbours before the maximum is taken. The transform counts a
    longer circle in more pixels; a hit has one vote for each of them all the same.
    """
    image = np.zeros((2 * HALF_SIZE + 1, 2 * HALF_SIZE + 1), bool)
    image[np.rint(y / PIXEL).astype(int) + HALF_SIZE, np.rint(x / PIXEL).astype(int) + HALF_SIZE] = True
    votes = hough_circle(image, RADII, normalize=False, full_output=True)  # type: ignore[no-untyped-call]
    votes = gaussian_filter(votes.astype(np.float32), 1.0, mode="constant")
    radius, row, column = np.unravel_index(int(votes.argmax()), votes.shape)
    offset = HALF_SIZE + int(RADII.max())
    return PIXEL * (column - offset), PIXEL * (row - offset), PIXEL * float(RADII[radius])


def hough_rings(x: Floats, y: Floats, *, refit: bool = True) -> NDArray[np.void]:
    """RING[rings]: peaks one after the other, each without the hits near the earlier ones.

    A ring has the hits, the radius and the width that the search of the chain asks for. refit: Taubin's fit to all hits
    of the event near the peak, twice; else the peak.
    """
    rings: list[tuple[float, float, float, float, int]] = []
    free = np.ones(len(x), bool)
    while len(rings) < MAX_RINGS and free.sum() >= CUTS["min_hits"]:
        ring = hough_peak(x[free], y[free])
        if refit:
            for window, of in ((CUTS["first_window"], free), (CUTS["window"], np.ones(len(x), bool))):
                near = of & (abs(np.hypot(x - ring[0], y - ring[1]) - ring[2]) <= window)
                if near.sum() < CUTS["min_hits"]:
                    break
                ring = algebraic_fit(x[near], y[near], 1)
        away = abs(np.hypot(x - ring[0], y - ring[1]) - ring[2])
        near = away <= CUTS["window"]
        n = int((near & free).sum())
        if n < CUTS["min_hits"] or not CUTS["min_radius"] <= ring[2] <= CUTS["max_radius"]:
            break
        if (away[near] ** 2).mean() > CUTS["max_mean_square"]:
            break
        rings.append((*ring, 0.0, int(near.sum())))
        free &= ~near
    return np.array(rings, RING.dtype)
