"""From fired VELO pixels to clusters, as the clustering of the readout or of HLT1 gives them.

A pixel is identified by its channel id, sensor << 18 | column << 8 | row with column 0-767
(docs/formats/velo-banks.md), which sorts pixels by sensor, column and row. Where pixels of several events are handled
together, the number of the event in the chunk is in the bits above the channel id.
"""

import numpy as np
from numpy.typing import NDArray

from hltnode.processing.offline.arrays import Int64Array
from hltnode.protocol.lhcb.banks.velo import RetinaClusters
from hltnode.protocol.lhcb.lhcb_id import VP_TYPE

_DETECTOR_TYPE_SHIFT, SENSOR_SHIFT, COLUMN_SHIFT = 28, 18, 8
EVENT_SHIFT = 26
COLUMN_MASK, ROW_MASK = 0x3FF, 0xFF
_LAST_ROW = 255

_ORIENTATION_X, _ORIENTATION_Y = np.uint32(1 << 27), np.uint32(1 << 26)

# VPRetinaCluster v3 gives the centre in quarters of a pixel.
_FRACTION_BITS = 2
_QUARTERS = 1 << _FRACTION_BITS


def label_clusters(channels: Int64Array) -> Int64Array:
    """Cluster number (0, 1, ...) of each pixel: 8-connected components of sorted, distinct channel ids."""
    column, row = (
        channels >> COLUMN_SHIFT,
        channels & ROW_MASK,
    )  # columns of all sensors, with gaps between sensors
    above = np.flatnonzero((np.diff(channels) == 1) & (row[:-1] != _LAST_ROW))
    starts, ends = [above], [above + 1]
    # In sorted order the up to three neighbours in the next column follow one another, from row - 1 on.
    following = np.searchsorted(channels, channels + (1 << COLUMN_SHIFT) - 1)
    for step in range(3):
        candidate = np.minimum(following + step, len(channels) - 1)
        near = (column[candidate] == column + 1) & (np.abs(row[candidate] - row) <= 1)
        starts.append(np.flatnonzero(near))
        ends.append(candidate[near])
    a, b = np.concatenate(starts), np.concatenate(ends)
    label = np.arange(len(channels))
    # Each pixel takes the smallest label of its neighbours, then the label of that label, until nothing changes.
    while not np.array_equal(label[a], label[b]):
        lower = np.minimum(label[a], label[b])
        np.minimum.at(label, a, lower)
        np.minimum.at(label, b, lower)
        label = label[label]
    # The first pixel of a cluster has its own index as label.
    numbers: Int64Array = np.cumsum(label == np.arange(len(label))) - 1
    return numbers[label]


def retina_clusters(channels: Int64Array, labels: Int64Array) -> RetinaClusters:
    """The clusters at their centres of gravity, rounded to a quarter of a pixel."""
    sensor, size, col_sum, row_sum = _sums(channels, labels)
    col4 = np.floor(_QUARTERS * col_sum / size + 0.5).astype(np.int64)
    row4 = np.floor(_QUARTERS * row_sum / size + 0.5).astype(np.int64)
    return clusters_at_quarters(sensor, col4, row4)


def clusters_at_quarters(sensor: Int64Array, col4: Int64Array, row4: Int64Array) -> RetinaClusters:
    """Clusters at positions given in quarters of a pixel."""
    # The word of column 0, row 0 without fractions is 0, which decoders drop: such a cluster moves by a quarter.
    row4 = np.where((col4 == 0) & (row4 == 0), 1, row4)
    return RetinaClusters(
        sensor=sensor.astype(np.uint32),
        column=(col4 // _QUARTERS).astype(np.uint32),
        row=(row4 // _QUARTERS).astype(np.uint32),
        fraction_x=(col4 % _QUARTERS).astype(np.uint32),
        fraction_y=(row4 % _QUARTERS).astype(np.uint32),
        flags=np.zeros(len(sensor), dtype=np.uint32),
        fraction_bits=_FRACTION_BITS,
    )


def retina_ids(clusters: RetinaClusters) -> NDArray[np.uint32]:
    """LHCbIDs that the decoding of retina banks gives, with orientation bits (docs/formats/lhcb-id.md)."""
    ids = _ids(clusters.sensor, clusters.column, clusters.row)
    ids[clusters.fraction_x != 0] |= _ORIENTATION_X
    ids[clusters.fraction_y != 0] |= _ORIENTATION_Y
    return ids


def superpixel_ids(channels: Int64Array, labels: Int64Array) -> NDArray[np.uint32]:
    """LHCbID of each cluster as clustering of super-pixels gives it: the integer part of the centre, no orientation."""
    sensor, size, col_sum, row_sum = _sums(channels, labels)
    return _ids(sensor, col_sum // size, row_sum // size)


def _ids(sensor: NDArray[np.integer], column: NDArray[np.integer], row: NDArray[np.integer]) -> NDArray[np.uint32]:
    channel = sensor.astype(np.int64) << SENSOR_SHIFT | column.astype(np.int64) << COLUMN_SHIFT | row.astype(np.int64)
    return (VP_TYPE << _DETECTOR_TYPE_SHIFT | channel).astype(np.uint32)


def _sums(channels: Int64Array, labels: Int64Array) -> tuple[Int64Array, Int64Array, Int64Array, Int64Array]:
    """Sensor, number of pixels, sum of columns and sum of rows of each cluster."""
    size = np.bincount(labels)
    sensor = np.empty(len(size), dtype=np.int64)
    sensor[labels] = channels >> SENSOR_SHIFT
    col_sum = np.bincount(labels, channels >> COLUMN_SHIFT & COLUMN_MASK).astype(np.int64)
    row_sum = np.bincount(labels, channels & ROW_MASK).astype(np.int64)
    return sensor, size, col_sum, row_sum
