"""VELO banks of fired pixels, and the LHCbIDs that decoding them gives."""

import itertools
from typing import Literal

import numpy as np
from numpy.typing import NDArray

from hltnode.processing.lhcb.offline.simulation.response.pixel_clusters import (
    COLUMN_MASK,
    COLUMN_SHIFT,
    EVENT_SHIFT,
    ROW_MASK,
    SENSOR_SHIFT,
    label_clusters,
    retina_clusters,
    retina_ids,
    superpixel_ids,
)
from hltnode.processing.lhcb.offline.simulation.response.velo_response import FiredPixels
from hltnode.processing.offline.arrays import Int64Array
from hltnode.protocol.lhcb.bank_types import LhcbBankType
from hltnode.protocol.lhcb.bank_versions import VELO
from hltnode.protocol.lhcb.banks.velo import (
    encode_retina_clusters,
    encode_superpixels,
    superpixels_of_pixels,
)
from hltnode.protocol.raw_data.raw_bank import RawBank

VeloEncoding = Literal["retina", "superpixel"]

_TYPES: dict[VeloEncoding, LhcbBankType] = {"retina": LhcbBankType.VP_RETINA_CLUSTER, "superpixel": LhcbBankType.VP}
VERSIONS: dict[VeloEncoding, tuple[int, ...]] = {
    encoding: tuple(int(version) for version in VELO.written[bank_type]) for encoding, bank_type in _TYPES.items()
}
DEFAULT_VERSIONS: dict[VeloEncoding, int] = {encoding: versions[0] for encoding, versions in VERSIONS.items()}


def velo_banks_of(
    fired: FiredPixels, n_events: int, encoding: VeloEncoding, version: int
) -> tuple[list[list[RawBank]], NDArray[np.uint32], Int64Array]:
    """The banks of each event, the LHCbID u32 of each cluster, and the cluster i64 of each crossing of `fired`."""
    labels = label_clusters(fired.channels)
    channels = fired.channels & (1 << EVENT_SHIFT) - 1
    if encoding == "superpixel":
        first_pixels = np.searchsorted(fired.channels, np.arange(n_events + 1) << EVENT_SHIFT)
        banks = [_superpixel_banks(channels[a:b], version) for a, b in itertools.pairwise(first_pixels.tolist())]
        return banks, superpixel_ids(channels, labels), labels[fired.middle]
    clusters = retina_clusters(channels, labels)
    event = np.empty(len(clusters.sensor), dtype=np.int64)
    event[labels] = fired.channels >> EVENT_SHIFT
    banks = by_event(encode_retina_clusters(clusters, version, event, n_events), n_events)
    return banks, retina_ids(clusters), labels[fired.middle]


def by_event(banks: list[RawBank], n_events: int) -> list[list[RawBank]]:
    """The banks of each event; all events have the same number of banks."""
    n = len(banks) // n_events
    return [banks[n * event : n * (event + 1)] for event in range(n_events)]


def _superpixel_banks(channels: Int64Array, version: int) -> list[RawBank]:
    places = (channels >> SENSOR_SHIFT, channels >> COLUMN_SHIFT & COLUMN_MASK, channels & ROW_MASK)
    superpixels = superpixels_of_pixels(*(place.astype(np.uint32) for place in places))
    return encode_superpixels(superpixels, version)
