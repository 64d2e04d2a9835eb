"""The algorithms that deliver output lists: places of the elements of each event, then one copy of each column."""

from collections.abc import Iterable

from hltnode.processing.algorithms.copy_list import copy_list, delivered, source, source_offset
from hltnode.processing.algorithms.list_offsets import count, list_offsets, offset
from hltnode.processing.framework.batch import event_flags
from hltnode.processing.framework.collections import Column
from hltnode.processing.framework.declaration import Algorithm
from hltnode.processing.framework.output_lists import OutputList

DELIVERING = (list_offsets, copy_list)
"""The kernels, for the library of a chain."""


def deliver_lists(lists: Iterable[OutputList]) -> tuple[Algorithm, ...]:
    """The algorithms that deliver lists, to be run after all others."""
    lists = tuple(lists)
    return (*(_offsets(each) for each in lists), *(_copy(each, column) for each in lists for column in each.delivered))


def _offsets(of: OutputList) -> Algorithm:
    return list_offsets.on(
        f"list_offsets/{of.name}",
        {count: of.count, event_flags: event_flags, offset: of.offsets},
        capacities={"capacity": of.bound},
    )


def _copy(of: OutputList, column: Column) -> Algorithm:
    assert column.collection is not None
    assert column.collection.placement is not None
    placement = column.collection.placement
    return copy_list.on(
        f"copy_list/{of.name}.{column.short_name}",
        {
            offset: of.offsets,
            source_offset: of.offsets if placement.offsets is None else placement.offsets,
            source: column,
            delivered: of.delivered[column],
        },
        constants={
            "element_bytes": column.dtype.itemsize,
            "has_offset": int(placement.offsets is not None),
            "divisor": placement.divisor,
            "per_event": placement.per_event,
            "times": placement.times,
        },
    )
