"""Reports and counts of composites."""

from collections.abc import Iterable

from hltnode.processing.framework.collections import Column
from hltnode.processing.selection.lines.composite import Combination, as_input, part_inputs
from hltnode.processing.selection.reports.reported import Parts, Reported
from hltnode.protocol.raw_data.selection_reports import ClassId


def reports_of_composites(composites: Iterable[Combination]) -> tuple[Reported, ...]:
    """The report contents of composites: their public numbers, in the order of their declaration, and both parts."""
    return tuple(_reported(composite) for composite in composites)


def _reported(composite: Combination) -> Reported:
    names = composite.public
    parts = zip(composite.parts, part_inputs(composite), strict=True)
    return Reported(
        input=as_input(composite),
        class_id=ClassId.PARTICLE,
        numbers=lambda candidate: [getattr(candidate, name) for name in names],
        names=names,
        parts=tuple(Parts(numbers, of) for numbers, of in parts),
    )


def counts_of_composites(composites: Iterable[Combination]) -> dict[str, Column]:
    """The counts of composites by name: candidates, and those beyond the bound."""
    return {
        name: column
        for composite in composites
        for name, column in (
            (composite.collection.name, composite.count),
            (f"{composite.collection.name}_left_out", composite.left_out),
        )
    }
