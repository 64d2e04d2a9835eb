"""Runs of an image and their components, from the label image of a labelling sequence for GPUs."""

import numpy as np
from numpy.typing import NDArray

COMPONENT_BIT = np.uint32(1 << 31)
"""Marks the number of a component, which replaces the label of its first pixel (gpu_labelling/label_image.cuh)."""
NO_ROW_DATA = 0xFFFFFFFF


def foreground(
    row_data: NDArray[np.uint32], width: int, bits: int, threshold: int, data: NDArray[np.uint8]
) -> NDArray[np.bool_]:
    """bool[rows, width]. row_data: byte offset of each row in `data`; threshold: of pixels of 8 bits."""
    row_bytes = -(-width * bits // 8)
    packed = np.zeros((len(row_data), row_bytes), np.uint8)
    is_there = row_data != NO_ROW_DATA
    for row in np.flatnonzero(is_there).tolist():
        begin = int(row_data[row])
        packed[row] = data[begin : begin + row_bytes]
    if bits == 1:
        return np.unpackbits(packed, axis=1, count=width, bitorder="little").view(np.bool_)
    bright: NDArray[np.bool_] = (packed >= threshold) & is_there[:, np.newaxis]
    return bright


def runs_of(pixels: NDArray[np.bool_]) -> tuple[NDArray[np.int64], NDArray[np.int64], NDArray[np.int64]]:
    """Row, first column and column behind the last pixel of each run, row by row."""
    edged = np.zeros((pixels.shape[0], pixels.shape[1] + 2), np.int8)
    edged[:, 1:-1] = pixels
    change = np.diff(edged, axis=1)
    row, begin = np.nonzero(change == 1)
    return row, begin, np.nonzero(change == -1)[1]


def numbers_of_labels(labels: NDArray[np.uint32], places: NDArray[np.int64]) -> NDArray[np.int64]:
    """The number of the component of each place: a label is an earlier place, until one has COMPONENT_BIT."""
    found = labels[places]
    while (is_open := (found & COMPONENT_BIT) == 0).any():
        found[is_open] = labels[found[is_open]]
    return (found & ~COMPONENT_BIT).astype(np.int64)
