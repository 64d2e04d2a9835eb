"""Conditions: numbers of a chain's detector constants that a trigger configuration may set, such as the beam position.

They change between runs, while the rest of the geometry stays. A configuration that sets none leaves all constants as
they are.
"""

from collections.abc import Collection, Iterable, Mapping, Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from hltnode.processing.framework.collections import Column
from hltnode.processing.framework.measured_quantities import MeasuredQuantity
from hltnode.processing.framework.near_names import nearest
from hltnode.processing.selection.configuration.numbers import finite_number
from hltnode.processing.selection.errors import TriggerConfigError

Values = tuple[tuple[str, float], ...]
"""The conditions of a configuration: name and value, sorted by name."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Condition:
    """A float32 in a constant column, which is one record.

    name: the key in `[conditions]`. column, member: the number that it replaces. low, high: its range, in `unit`, which
    is empty for a number without one. histogram: the histogram whose median measures it; empty: it is not measured.
    tolerance: largest difference between the two that costs no events.
    """

    name: str
    column: Column
    member: str
    low: float
    high: float
    unit: str
    histogram: str = ""
    tolerance: float = 0.0


def parse_conditions(table: object) -> Values:
    """The conditions of a table. Raises TriggerConfigError, which names the key."""
    if not isinstance(table, Mapping):
        raise TriggerConfigError("conditions: a table of numbers is expected")
    return tuple(sorted((name, float(finite_number(f"conditions.{name}", value))) for name, value in table.items()))


def check_conditions(values: Values, known: Sequence[Condition], columns: Iterable[Column]) -> None:
    """Raises TriggerConfigError for an unknown condition, a value out of its range, and a column that the sequence does
    not read."""
    by_name = {condition.name: condition for condition in known}
    read = set(columns)
    for name, value in values:
        condition = by_name.get(name)
        if condition is None:
            hint = nearest(name, by_name) if by_name else "this chain has none"
            raise TriggerConfigError(f"conditions.{name}: unknown condition; {hint}")
        if not condition.low <= value <= condition.high:
            found = f"{value:g} {condition.unit}".rstrip()
            raise TriggerConfigError(f"conditions.{name}: {found}, expected {condition.low:g} to {condition.high:g}")
        if condition.column not in read:
            raise TriggerConfigError(f"conditions.{name}: the sequence does not read {condition.column.name}")


def measured_quantities(
    constants: Mapping[str, NDArray[np.uint8]], known: Sequence[Condition], histograms: Collection[str]
) -> tuple[MeasuredQuantity, ...]:
    """The conditions that one of these histograms measures, with their values in the constants."""
    return tuple(
        MeasuredQuantity(
            name=condition.name,
            histogram=condition.histogram,
            configured=float(constants[condition.column.name].view(condition.column.dtype)[condition.member].item()),
            tolerance=condition.tolerance,
            low=condition.low,
            high=condition.high,
            unit=condition.unit,
        )
        for condition in known
        if condition.histogram in histograms and condition.column.name in constants
    )


def with_conditions(
    constants: Mapping[str, NDArray[np.uint8]], values: Values, known: Sequence[Condition]
) -> Mapping[str, NDArray[np.uint8]]:
    """The constants (u8 by column name) with the values of checked conditions; the given arrays are not changed."""
    if not values:
        return constants
    by_name = {condition.name: condition for condition in known}
    changed = dict(constants)
    for name, value in values:
        column, member = by_name[name].column, by_name[name].member
        content = np.array(changed[column.name]).view(column.dtype)
        content[member] = value
        changed[column.name] = content.view(np.uint8)
    return changed
