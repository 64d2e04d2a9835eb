"""The input of lines on primary vertices, and its fields."""

from typing import Any

from hltnode.processing.lhcb.primary_vertices.collections import pv_count, pvs, vertices
from hltnode.processing.selection.expressions.expression import Expression
from hltnode.processing.selection.expressions.units import LENGTH, NO_UNIT
from hltnode.processing.selection.lines.inputs import ColumnField, Input, any_of

primary_vertices = Input(
    "primary vertices",
    "vertices of proton collisions",
    {
        "x": ColumnField(vertices, "position", LENGTH, "x"),
        "y": ColumnField(vertices, "position", LENGTH, "y"),
        "z": ColumnField(vertices, "position", LENGTH, "z"),
        "n_tracks": ColumnField(vertices, "sum of the weights of its tracks", NO_UNIT, "n_tracks"),
    },
    collection=pvs,
    count=pv_count,
)


def any_pv(condition: Any) -> Expression:
    """True if the condition holds for at least one primary vertex of the event."""
    return any_of(primary_vertices, condition)
