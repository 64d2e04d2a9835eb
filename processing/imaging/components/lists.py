"""Output lists of the chain `ccl`."""

from hltnode.processing.framework.output_lists import ListValue, OutputList
from hltnode.processing.imaging.components.collections import (
    component_area,
    component_box,
    component_count,
    row_runs,
    run_count,
    run_label,
    run_span,
)
from hltnode.processing.imaging.images.collections import image_row_count

FEATURES = OutputList(
    name="features",
    text="the components of each image that have features, in raster order of their first pixels",
    count=component_count,
    values={
        "area": ListValue(column=component_area, text="pixels of the component", unit="pixels"),
        "left": ListValue(column=component_box, member="left", text="first column"),
        "top": ListValue(column=component_box, member="top", text="first row"),
        "right": ListValue(column=component_box, member="right", text="last column"),
        "bottom": ListValue(column=component_box, member="bottom", text="last row"),
    },
)

RUNS = OutputList(
    name="runs",
    text="the runs of foreground pixels of each image, row by row, each row from left to right",
    count=run_count,
    values={
        "begin": ListValue(column=run_span, member="begin", text="column of the first pixel"),
        "end": ListValue(column=run_span, member="end", text="column behind the last pixel"),
        "label": ListValue(column=run_label, text="number of its component, from 0 in raster order"),
    },
)
ROWS = OutputList(
    name="rows",
    text="the rows of each image that is labelled",
    count=image_row_count,
    values={"runs_of_row": ListValue(column=row_runs, member="count", text="runs of the row")},
)
