"""Numbers of pixels of retina clusters, from the topology in their words (docs/formats/velo-banks.md).

A word of version 3 or 4 has the number of a pattern of pixels. Patterns with the same centre, in quarters of a pixel,
are numbered from 0 by rising bits. There are three kinds of patterns: an isolated super-pixel, and squares of 3 x 3
pixels whose lower corner of small column, or of large column, belongs to the cluster.
"""

from collections import Counter
from collections.abc import Iterable, Iterator

import numpy as np
from numpy.typing import NDArray

from hltnode.processing.lhcb.velo.collections import N_RETINA_KEYS, RetinaPattern

_SQUARE = 3
_SUPER_PIXEL_ROWS = 4
_CORNERS = {
    RetinaPattern.RETINA_SQUARE: ((0, 0), ((0, 1), (1, 0))),
    RetinaPattern.RETINA_SQUARE_REVERSED: ((2, 0), ((1, 0), (2, 1))),
}
"""The corner of a square as column and row, and the two pixels beside it that are lit where the corner is dark."""

Pixels = tuple[tuple[int, int], ...]
"""Column and row of each pixel of a pattern, by rising bits."""


def _patterns(n_rows: int, n_bits: int) -> Iterator[Pixels]:
    for pattern in range(1, 1 << n_bits):
        yield tuple(divmod(bit, n_rows) for bit in range(n_bits) if pattern >> bit & 1)


def is_connected(pixels: Pixels) -> bool:
    """Whether the pixels are one 8-connected cluster."""
    left, edge = set(pixels[1:]), [pixels[0]]
    while edge:
        column, row = edge.pop()
        near = {it for it in left if abs(it[0] - column) <= 1 and abs(it[1] - row) <= 1}
        left -= near
        edge += near
    return not left


def fractions_of(pixels: Pixels) -> tuple[int, int]:
    """Centre of the pixels in x and y, rounded to quarters, without its whole pixels."""
    n = len(pixels)
    x, y = ((4 * sum(pixel[axis] for pixel in pixels) + n // 2) // n % 4 for axis in range(2))
    return x, y


def patterns_of(kind: RetinaPattern) -> Iterator[Pixels]:
    """The patterns of a kind, in the order of their numbers."""
    if kind == RetinaPattern.RETINA_ISOLATED:
        yield from filter(is_connected, _patterns(_SUPER_PIXEL_ROWS, 2 * _SUPER_PIXEL_ROWS))
        return
    corner, beside = _CORNERS[kind]
    for pixels in filter(is_connected, _patterns(_SQUARE, _SQUARE**2)):
        if corner in pixels or all(pixel in pixels for pixel in beside):
            yield pixels


def _sizes(patterns: Iterable[Pixels]) -> NDArray[np.uint8]:
    sizes = np.zeros(N_RETINA_KEYS, np.uint8)
    numbers: Counter[tuple[int, int]] = Counter()
    for pixels in patterns:
        x, y = fractions_of(pixels)
        sizes[numbers[x, y] << 4 | x << 2 | y] = len(pixels)
        numbers[x, y] += 1
    return sizes


def retina_size_table() -> NDArray[np.uint8]:
    """u8[3 * N_RETINA_KEYS]: for each RetinaPattern the number of pixels of a key, 0 where no pattern has it.

    A key is number << 4 | fraction x << 2 | fraction y, fractions in quarters.
    """
    return np.concatenate([_sizes(patterns_of(kind)) for kind in RetinaPattern])
