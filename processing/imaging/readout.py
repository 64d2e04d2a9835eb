"""The readout of images: a source for each strip, and ODIN where a run has it."""

from enum import IntEnum

from hltnode.processing.framework.readout import OneEncodingReadout
from hltnode.processing.imaging.pixel_lists import PIXEL_LIST_TYPE
from hltnode.processing.imaging.strips import IMAGE_SUBDETECTORS, STRIP_TYPE, is_image_source
from hltnode.protocol.raw_data.source_id import ODIN_SUBDETECTOR


class ImageBankType(IntEnum):
    """Types that this chain names (docs/formats/bank-types.md)."""

    STRIP = STRIP_TYPE
    PIXEL_LIST = PIXEL_LIST_TYPE
    SEVERAL_STRIPS = 240
    """Made when a file is read: the source has several banks in the event; the payload is that of the first one."""


IMAGE_READOUT = OneEncodingReadout(
    subdetectors={
        ODIN_SUBDETECTOR: "TIMING",
        **{number: f"IMAGE {i}" for i, number in enumerate(IMAGE_SUBDETECTORS)},
    },
    bank_types={int(each): each.name for each in ImageBankType},
    data_types=frozenset({int(ImageBankType.STRIP), int(ImageBankType.PIXEL_LIST)}),
    error_type=int(ImageBankType.SEVERAL_STRIPS),
    is_source=is_image_source,
)
"""Strips and lists of pixels by source."""
