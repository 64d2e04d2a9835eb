"""The inputs of lines: the image of the event and its components."""

from hltnode.processing.framework.batch import event_flags
from hltnode.processing.framework.collections import Column
from hltnode.processing.framework.flags import EventFlag
from hltnode.processing.imaging.components.collections import (
    all_component_count,
    component_area,
    component_box,
    component_count,
    component_intensity,
    component_sum_x,
    component_sum_y,
    component_weighted_x,
    component_weighted_y,
    run_count,
)
from hltnode.processing.imaging.components.collections import components as component_collection
from hltnode.processing.imaging.images.collections import event_number, image_row_count, image_shape
from hltnode.processing.imaging.images.flags import (
    BAD_STRIP,
    IMAGE_TOO_LARGE,
    MISSING_ROWS,
    NO_IMAGE,
    OVERLAPPING_STRIPS,
    STRIP_MISMATCH,
    TOO_MANY_COMPONENTS,
)
from hltnode.processing.selection.lines.inputs import ColumnField, DerivedField, FieldOf, Input

WORD = 4294967296.0
"""Values of a word of 32 bits."""


def _flagged(mask: int, text: str) -> DerivedField:
    return DerivedField(lambda event: (event.flags & mask) != 0, text)


def _sum(name: str, column: Column, text: str) -> dict[str, FieldOf]:
    """A sum of 64 bits: its two words, which are exact, and its value in single precision."""
    return {
        name: DerivedField(lambda one: getattr(one, f"{name}_high") * WORD + getattr(one, f"{name}_low"), text),
        f"{name}_low": ColumnField(column, f"{text}, low 32 bits", element=0),
        f"{name}_high": ColumnField(column, f"{text}, high 32 bits", element=1),
    }


event = Input(
    "events",
    "the event as a whole",
    {
        "width": ColumnField(image_shape, "columns of the image; 0 without a usable strip", member="width"),
        "height": ColumnField(image_shape, "rows of the image, as announced", member="height"),
        "bits": ColumnField(image_shape, "bits of a pixel, 1 or 8", member="bits"),
        "n_rows": ColumnField(image_row_count, "rows of the image; 0 if it is not labelled"),
        "n_runs": ColumnField(run_count, "runs of foreground pixels"),
        "n_components": ColumnField(all_component_count, "components"),
        "number": ColumnField(event_number, "number of the event in the run, low 32 bits", element=0),
        "number_high": ColumnField(event_number, "number of the event in the run, high 32 bits", element=1),
        "flags": ColumnField(event_flags, "the flag word"),
        "incomplete": _flagged(EventFlag.INCOMPLETE, "true if the fragment of a source was missing"),
        "no_image": _flagged(NO_IMAGE.mask, "true without a usable strip"),
        "bad_strip": _flagged(BAD_STRIP.mask, "true if a strip contradicts itself"),
        "strip_mismatch": _flagged(STRIP_MISMATCH.mask, "true if strips are of different images"),
        "missing_rows": _flagged(MISSING_ROWS.mask, "true if a row is in no strip"),
        "overlapping_strips": _flagged(OVERLAPPING_STRIPS.mask, "true if a row is in several strips"),
        "image_too_large": _flagged(IMAGE_TOO_LARGE.mask, "true if the image has too many rows or columns"),
        "too_many_components": _flagged(TOO_MANY_COMPONENTS.mask, "true if components have no features"),
    },
)

components = Input(
    "components",
    "connected components of the foreground that have features",
    {
        "area": ColumnField(component_area, "pixels"),
        "left": ColumnField(component_box, "first column", member="left"),
        "top": ColumnField(component_box, "first row", member="top"),
        "right": ColumnField(component_box, "last column", member="right"),
        "bottom": ColumnField(component_box, "last row", member="bottom"),
        "width": DerivedField(lambda one: one.right - one.left + 1, "columns of its box"),
        "height": DerivedField(lambda one: one.bottom - one.top + 1, "rows of its box"),
        **_sum("sum_x", component_sum_x, "sum of the columns of its pixels"),
        **_sum("sum_y", component_sum_y, "sum of the rows of its pixels"),
        "x": DerivedField(lambda one: one.sum_x / one.area, "mean column of its pixels"),
        "y": DerivedField(lambda one: one.sum_y / one.area, "mean row of its pixels"),
        **_sum("intensity", component_intensity, "sum of its pixels; a pixel of 1 bit is 1"),
        "mean_intensity": DerivedField(lambda one: one.intensity / one.area, "mean of its pixels"),
        **_sum("weighted_x", component_weighted_x, "sum of column times pixel"),
        **_sum("weighted_y", component_weighted_y, "sum of row times pixel"),
        "centre_x": DerivedField(
            lambda one: one.weighted_x / one.intensity, "mean column, weighted with the pixels; NaN if all are 0"
        ),
        "centre_y": DerivedField(
            lambda one: one.weighted_y / one.intensity, "mean row, weighted with the pixels; NaN if all are 0"
        ),
    },
    collection=component_collection,
    count=component_count,
)

INPUTS = {"event": event, "components": components}
EVENT_WORDS = (event.candidate().number, event.candidate().number_high)
"""The numbers that scalers hash. The run is not among them: MFPs do not have it."""
USUAL_FIELDS = (
    *("event.*", "components.area", "components.x", "components.y", "components.left", "components.top"),
    *("components.right", "components.bottom", "components.intensity", "decisions.accepted"),
)
