"""VELO banks of fired pixels, and the LHCbIDs that decoding them gives."""

from typing import Literal

import numpy as np
from numpy.typing import NDArray

from hltnode.processing.simulation.pixel_clusters import (
    COLUMN_MASK,
    COLUMN_SHIFT,
    ROW_MASK,
    SENSOR_SHIFT,
    label_clusters,
    retina_clusters,
    retina_ids,
    superpixel_ids,
)
from hltnode.processing.simulation.velo_particles import Int64Array
from hltnode.processing.simulation.velo_response import FiredPixels
from hltnode.protocol.raw_bank import RawBank
from hltnode.protocol.velo_banks import encode_retina_clusters, encode_superpixels, superpixels_of_pixels

VeloEncoding = Literal["retina", "superpixel"]

DEFAULT_VERSIONS: dict[VeloEncoding, int] = {"retina": 3, "superpixel": 2}
# Versions that can be written; 4 is that of data taking, the others are simulated.
VERSIONS: dict[VeloEncoding, tuple[int, ...]] = {"retina": (3, 4), "superpixel": (2, 3, 4)}


def velo_banks_of(
    fired: FiredPixels, encoding: VeloEncoding, version: int
) -> tuple[list[RawBank], NDArray[np.uint32], Int64Array]:
    """The banks, the LHCbID u32 of each cluster, and the cluster i64 of each crossing of `fired`."""
    labels = label_clusters(fired.channels)
    if encoding == "retina":
        clusters = retina_clusters(fired.channels, labels)
        banks, ids = encode_retina_clusters(clusters, version), retina_ids(clusters)
    else:
        banks, ids = _superpixel_banks(fired.channels, version), superpixel_ids(fired.channels, labels)
    return banks, ids, labels[fired.middle]


def _superpixel_banks(channels: Int64Array, version: int) -> list[RawBank]:
    places = (channels >> SENSOR_SHIFT, channels >> COLUMN_SHIFT & COLUMN_MASK, channels & ROW_MASK)
    superpixels = superpixels_of_pixels(*(place.astype(np.uint32) for place in places))
    return encode_superpixels(superpixels, version)
