"""The pixels of a sparse image: bounds and units."""

from hltnode.processing.framework.collections import U32, Collection, Column, Placement, SharedTypes
from hltnode.processing.imaging.pixel_lists import MAX_PIXELS, PIXEL_BYTES, PIXEL_LIST_TYPE, PIXEL_LIST_VERSION

pixel_types = SharedTypes(
    __file__,
    "pixel_types",
    sizes={
        "max_pixels": MAX_PIXELS,
        "pixel_bytes": PIXEL_BYTES,
        "pixel_list_type": PIXEL_LIST_TYPE,
        "pixel_list_version": PIXEL_LIST_VERSION,
    },
)

pixel_offset = Column(name="pixels.offset", dtype=U32, bound=lambda limits: limits.events, extra=1, of_event=True)
"""Prefix sum of the pixels of the images that are labelled."""
pixels = Collection(
    "pixels",
    capacity=lambda limits: limits.input_bytes // PIXEL_BYTES,
    placement=Placement(offsets=pixel_offset),
    max_per_event=MAX_PIXELS,
)
pixel_count = pixels.per_event("count", U32)
"""Pixels in the list of each image; 0 for an image that is not labelled."""
pixel_position = pixels.column("position", U32)
"""Row in the high, column in the low 16 bits, in the order of the list; no_pixel for one that is left out."""
pixel_label = pixels.column("label", U32)
"""Component of each pixel, numbered from 0 in the order of their first pixels in the list; no_pixel for one that is
left out."""
pixel_total = pixels.per_event("total", U32)
"""Pixels of each image, as its banks announce them."""
