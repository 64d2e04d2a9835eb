"""Output lists of the chain `na62_rich`."""

from hltnode.processing.framework.output_lists import ListValue, OutputList
from hltnode.processing.na62.rich.collections import ring, ring_count

RINGS = OutputList(
    name="ring_list",
    text="the rings of each event",
    count=ring_count,
    values={
        "ring_x": ListValue(column=ring, member="x", text="x of the centre", unit="mm"),
        "ring_y": ListValue(column=ring, member="y", text="y of the centre", unit="mm"),
        "ring_radius": ListValue(column=ring, member="radius", text="radius", unit="mm"),
        "ring_hits": ListValue(column=ring, member="hits", text="hits of the ring"),
        "ring_chi2": ListValue(column=ring, member="chi2", text="sum of squared distances in units of the resolution"),
    },
)
