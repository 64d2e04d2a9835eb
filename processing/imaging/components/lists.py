"""Output lists of the chain `ccl`."""

from hltnode.processing.framework.output_lists import ListValue, OutputList
from hltnode.processing.imaging.components.collections import component_area, component_box, component_count

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
