"""Binary images for tests and benchmarks of labelling: random cells, and shapes that are hard for an algorithm.

Random images follow A. Hennequin, Performance optimization for the LHCb experiment, PhD thesis, Sorbonne Universite,
2022, section 4.3.6: a Mersenne Twister (MT19937), density d, square cells of g pixels.
"""

import numpy as np
from numpy.typing import NDArray

Image = NDArray[np.bool_]
"""bool[height, width]."""
MAX_GRANULARITY = 16


def random_cells(width: int, height: int, density: float, granularity: int, seed: tuple[int, ...]) -> Image:
    """Cells of `granularity` x `granularity` pixels, each foreground with probability `density` (0 to 1)."""
    rng = np.random.Generator(np.random.MT19937(np.random.SeedSequence(seed)))
    cells = rng.random((-(-height // granularity), -(-width // granularity))) < density
    return np.repeat(np.repeat(cells, granularity, axis=0), granularity, axis=1)[:height, :width]


def full(width: int, height: int) -> Image:
    """Every pixel: the longest runs, and one component."""
    return np.ones((height, width), np.bool_)


def checkerboard(width: int, height: int) -> Image:
    """Every second pixel: the most runs. One component if corners touch, else as many as pixels."""
    found: Image = np.indices((height, width)).sum(axis=0) % 2 == 0
    return found


def comb(width: int, height: int) -> Image:
    """Teeth in every second column, which only the last row joins: the most unions in one row."""
    image = np.zeros((height, width), np.bool_)
    image[:, ::2] = True
    image[-1] = True
    return image


def stairs(width: int, height: int) -> Image:
    """Steps down to the left: pairs of pixels, each of which touches the pair above at a corner.

    In raster order each pair is a new label until its right end (the pattern "stairs" of the thesis, section 4.2.4).
    """
    y, x = np.indices((height, width))
    found: Image = (x + 2 * y) % 5 < 2
    return found


def spiral(width: int, height: int) -> Image:
    """A path of one pixel that winds to the middle, with one pixel between the windings: the longest way inside."""
    image = np.zeros((height, width), np.bool_)
    left, top, right, bottom = 0, 0, width - 1, height - 1
    x = 0
    while left <= right and top <= bottom:
        image[top, x : right + 1] = True
        image[top : bottom + 1, right] = True
        if bottom > top + 1:
            image[bottom, left : right + 1] = True
        if right > left + 1 and bottom > top + 1:
            image[top + 2 : bottom + 1, left] = True
        # The next winding begins at the end of this one, two rows below its first row.
        x = left
        left, top, right, bottom = left + 2, top + 2, right - 2, bottom - 2
    return image
