"""The image of each event and its rows: bounds, shapes and units."""

import numpy as np

from hltnode.processing.framework.batch import events
from hltnode.processing.framework.collections import U32, Collection, Column, Placement, Record, SharedTypes
from hltnode.processing.framework.limits import BatchLimits
from hltnode.processing.imaging.strips import IMAGE_HEADER_SIZE, IMAGE_SUBDETECTORS, MAX_SIDE, STRIP_TYPE, VERSION

MAX_PIXELS = 1 << 26
"""Pixels of an image that is labelled, unless a configuration says otherwise: 8192 x 8192. A thread of a CPU has 4
bytes for each, for the runs of the image."""
MOST_PIXELS = MAX_SIDE * MAX_SIDE
"""The largest value that a configuration can set."""


def max_pixels(limits: BatchLimits) -> int:
    """Pixels of an image that is labelled."""
    return limits.constants.get("ccl_place_images.max_pixels", MAX_PIXELS)


IMAGE_SHAPE = Record(
    "image_shape",
    np.dtype([("width", "<u4"), ("height", "<u4"), ("bits", "<u4"), ("delivered", "<u4")]),
    {
        "width": "pixels; 0 for an event without a usable strip",
        "height": "pixels, as announced",
        "bits": "of a pixel, 1 or 8",
        "delivered": "sum of the rows of all usable strips, those of overlapping strips twice",
    },
)

image_types = SharedTypes(
    __file__,
    "image_types",
    records=(IMAGE_SHAPE,),
    sizes={
        "first_image_subdetector": IMAGE_SUBDETECTORS.start,
        "n_image_subdetectors": len(IMAGE_SUBDETECTORS),
        "strip_type": STRIP_TYPE,
        "strip_version": VERSION,
        "image_header_bytes": IMAGE_HEADER_SIZE,
        "max_side": MAX_SIDE,
    },
)

images = Collection("images", capacity=lambda limits: limits.events)
image_shape = images.per_event("shape", IMAGE_SHAPE)
event_number = events.per_event("number", U32, width=2)
"""[event][2]: low and high word of the number of the event in its run, from the headers of the MFPs."""

image_row_offset = Column(
    name="image_rows.offset", dtype=U32, bound=lambda limits: limits.events, extra=1, of_event=True
)
"""Prefix sum of the rows of the images that are labelled."""
# A row has at least one word of input, and at least half of the rows of a labelled image are there.
image_rows = Collection(
    "image_rows",
    capacity=lambda limits: limits.input_bytes // 2,
    placement=Placement(offsets=image_row_offset),
    max_per_event=MAX_SIDE,
)
image_row_count = image_rows.per_event("count", U32)
"""Rows of the image of each event; 0 for an image that is not labelled."""
image_row_data = image_rows.column("data", U32)
"""Byte offset of the pixels of each row in the raw input; no_row_data for a missing row."""
