"""Label images and edges of rows: bounds, shapes and units."""

import numpy as np

from hltnode.processing.framework.collections import (
    U16,
    U32,
    Collection,
    Column,
    Placement,
    Record,
    SharedTypes,
)
from hltnode.processing.framework.limits import BatchLimits
from hltnode.processing.imaging.images.collections import MOST_PIXELS, image_rows, max_pixels
from hltnode.processing.imaging.large_images.collections import image_parts
from hltnode.processing.imaging.strips import MAX_SIDE

MOST_PLACES = MOST_PIXELS + MAX_SIDE
"""Places for labels of the largest image that a configuration allows; a row has an even number of them."""
MOST_CHUNKS = MOST_PIXELS // 32 + MAX_SIDE
"""Chunks of 32 pixels of such an image; the last one of a row may be cut."""


def most_places(limits: BatchLimits) -> int:
    """Places for labels of the largest image that is labelled."""
    return max_pixels(limits) + MAX_SIDE


EDGE_CHUNK = Record(
    "edge_chunk",
    np.dtype([("edges", "<u4"), ("before", "<u4")]),
    {"edges": "bit i: pixel i differs from its left neighbour", "before": "edges of the row left of the chunk"},
)
LABEL_FEATURES = Record(
    "label_features",
    np.dtype(
        [
            *(("sum_x", "<u8"), ("sum_y", "<u8"), ("area", "<u4")),
            *(("left", "<u4"), ("right", "<u4"), ("bottom", "<u4")),
        ]
    ),
    {
        "sum_x": "of the columns of the pixels",
        "sum_y": "of their rows",
        "area": "pixels",
        "left": "first column",
        "right": "last column",
        "bottom": "last row",
    },
)
"""Features that lie at a label until it is joined to another one. The first row is that of the label."""

label_types = SharedTypes(
    __file__,
    "label_types",
    records=(EDGE_CHUNK, LABEL_FEATURES),
    sizes={"max_label_pixels": MOST_PLACES, "max_label_chunks": MOST_CHUNKS},
)

pixel_offset = Column(name="pixels.offset", dtype=U32, bound=lambda limits: limits.events, extra=1, of_event=True)
"""Prefix sum of the label places of each image."""
# A byte of input has at most 8 pixels, and at least half of the rows of a labelled image are there.
pixels = Collection(
    "pixels",
    capacity=lambda limits: 16 * limits.input_bytes,
    placement=Placement(offsets=pixel_offset),
    max_per_event=most_places,
)
pixel_bound = pixels.per_event("bound", U32)
"""Label places of each image: its rows times its width, which is rounded up to an even number."""
pixel_label = pixels.column("label", U32)
"""The label image: place of a pixel of the same component that comes earlier, or its own place. At last the first pixel
of a component has the number of the component, and the highest bit. Background, and with HA4 and FLSL all pixels but
the first ones of runs, have no value."""
pixel_edge = pixels.column("edge", U16)
"""[row][edge]: columns at which runs begin and end in turn."""

chunk_offset = Column(name="label_chunks.offset", dtype=U32, bound=lambda limits: limits.events, extra=1, of_event=True)
"""Prefix sum of the chunks of each image."""
# A chunk of a row has at least one word of input.
label_chunks = Collection(
    "label_chunks",
    capacity=lambda limits: limits.input_bytes // 2,
    placement=Placement(offsets=chunk_offset),
    max_per_event=lambda limits: max_pixels(limits) // 32 + MAX_SIDE,
)
chunk_bound = label_chunks.per_event("bound", U32)
chunk_edges = label_chunks.column("edges", EDGE_CHUNK)
"""Edges of each chunk of 32 pixels, row by row."""

row_edge_count = image_rows.column("edge_count", U32)
"""Edges of each row, an even number."""
row_roots = image_rows.column("roots", U32)
"""Components that begin in each row; then the number of the first of them in its part."""
part_strip_rows = image_parts.per_part("strip_rows", U32)
"""Rows of a strip, which one block labels at the same time."""

# Two first pixels of runs are never adjacent in a row, and a row has an even number of places.
moving_features = Collection(
    "moving",
    capacity=lambda limits: 8 * limits.input_bytes,
    placement=Placement(offsets=pixel_offset, divisor=2),
    max_per_event=lambda limits: most_places(limits) // 2,
)
label_features = moving_features.column("features", LABEL_FEATURES)
"""Features at the labels of runs, one place for two pixels."""
