"""Runs of foreground pixels and the components of each image: bounds, shapes and units."""

import numpy as np

from hltnode.processing.framework.collections import (
    U32,
    Collection,
    Column,
    DeclarationError,
    Placement,
    Record,
    Role,
    SharedTypes,
)
from hltnode.processing.framework.limits import BatchLimits
from hltnode.processing.imaging.images.collections import image_rows, max_pixels
from hltnode.processing.imaging.strips import MAX_SIDE

MAX_COMPONENTS = 4096
"""Components of an event that have features, unless a configuration says otherwise. 128 events with 60 bytes a
component take 31 MB."""
MOST_COMPONENTS = 1 << 23
"""The largest value that a configuration can set."""
BOUND_CONSTANTS = ("ccl_place_images.max_components", "ccl_place_pixels.max_components")
"""The constant in the sequences of strips and of lists of pixels."""


def max_components(limits: BatchLimits) -> int:
    """Components of an event that have features."""
    return next((limits.constants[name] for name in BOUND_CONSTANTS if name in limits.constants), MAX_COMPONENTS)


def _all_places(limits: BatchLimits) -> int:
    places = max_components(limits) * limits.events
    if places >= 1 << 31:
        raise DeclarationError(
            f"{places} components with features in a batch: 2^31 are too many; use fewer events in a batch"
        )
    return places


RUN = Record(
    "image_run",
    np.dtype([("begin", "<u2"), ("end", "<u2")]),
    {"begin": "column of the first pixel", "end": "column behind the last pixel"},
)
"""Consecutive foreground pixels of a row."""
BOX = Record(
    "component_box",
    np.dtype([("left", "<u4"), ("top", "<u4"), ("right", "<u4"), ("bottom", "<u4")]),
    {"left": "first column", "top": "first row", "right": "last column", "bottom": "last row"},
)
ROW_RUNS = Record(
    "row_runs",
    np.dtype([("first", "<u4"), ("count", "<u4")]),
    {"first": "number of its first run in the event"},
)

component_types = SharedTypes(__file__, "component_types", records=(RUN, BOX, ROW_RUNS))

run_offset = Column(name="runs.offset", dtype=U32, bound=lambda limits: limits.events, extra=1, of_event=True)
"""Prefix sum of the most runs of each image."""
# Every second pixel of one bit is a run: 4 for each byte of input. A label image would have as many bytes.
runs = Collection(
    "runs",
    capacity=lambda limits: 4 * limits.input_bytes,
    placement=Placement(offsets=run_offset),
    max_per_event=lambda limits: (max_pixels(limits) + MAX_SIDE) // 2,
)
run_bound = runs.per_event("bound", U32)
"""Places for runs of each image: all that its pixels can have."""
run_count = runs.per_event("count", U32)
run_span = runs.column("span", RUN)
"""The runs of each image, row by row, each row from left to right."""
run_label = runs.column("label", U32)
"""Component of each run, numbered from 0 in the order of their first pixels, row by row."""

row_runs = image_rows.column("runs", ROW_RUNS)
"""The runs of each row of the image."""

component_offset = Column(
    name="components.offset", dtype=U32, bound=lambda limits: limits.events, extra=1, of_event=True
)
"""First component of each event: all have the same number of places."""
components = Collection(
    "components",
    capacity=_all_places,
    placement=Placement(offsets=component_offset),
    max_per_event=max_components,
)
component_bound = components.per_event("bound", U32)
"""Components of each event that can have features."""
component_count = components.per_event("count", U32)
"""Components of each image that have features."""
all_components = Collection("all_components", capacity=lambda limits: limits.events)
all_component_count = all_components.per_event("count", U32, role=Role.OUTPUT)
"""Components of each image."""
component_area = components.column("area", U32)
"""Pixels."""
component_box = components.column("box", BOX)
component_sum_x = components.column("sum_x", U32, width=2)
"""[component][2]: low and high word of the sum of the columns of its pixels."""
component_sum_y = components.column("sum_y", U32, width=2)
"""[component][2]: low and high word of the sum of the rows of its pixels."""
component_intensity = components.column("intensity", U32, width=2)
"""[component][2]: low and high word of the sum of the pixels; a pixel of 1 bit is 1."""
component_weighted_x = components.column("weighted_x", U32, width=2)
"""[component][2]: low and high word of the sum of column times pixel."""
component_weighted_y = components.column("weighted_y", U32, width=2)
"""[component][2]: low and high word of the sum of row times pixel."""
feature_columns = (
    *(component_area, component_box, component_sum_x, component_sum_y),
    *(component_intensity, component_weighted_x, component_weighted_y),
)
"""All features of components, which each kernel that measures them makes."""
