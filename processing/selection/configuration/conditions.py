"""Conditions: numbers of a chain's detector constants that a trigger configuration may set, such as the beam position.

They change between runs, while the rest of the geometry stays. A configuration that sets none leaves all constants as
they are.
"""

from collections.abc import Callable, Collection, Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from hltnode.processing.framework.collections import Column
from hltnode.processing.framework.measured_quantities import MeasuredQuantity
from hltnode.processing.framework.near_names import nearest
from hltnode.processing.selection.configuration.numbers import finite_number
from hltnode.processing.selection.errors import TriggerConfigError, shown

Value = float | tuple[int, ...]
"""A number, or a list of numbers of channels, ascending."""
Values = tuple[tuple[str, Value], ...]
"""The conditions of a configuration: name and value, sorted by name."""
MAX_CHANNELS = 100_000
"""Most numbers in a list."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Condition:
    """A float32 in a constant column, which is one record.

    name: the key in `[conditions]`. column, member: the number that it replaces. low, high: its range, in `unit`, which
    is empty for a number without one. histogram: the histogram whose median measures it; empty: it is not measured.
    tolerance: largest difference between the two that costs no events. checked_by: further histograms whose medians
    must agree with it: each shows one part of the detector, so that a part at a wrong place contradicts the number.
    required: every interval of a folder of conditions must set it.
    """

    name: str
    column: Column
    member: str
    low: float
    high: float
    unit: str
    histogram: str = ""
    tolerance: float = 0.0
    checked_by: tuple[str, ...] = ()
    required: bool = False

    @property
    def columns(self) -> tuple[Column, ...]:
        """The columns that it changes."""
        return (self.column,)

    def check(self, value: Value) -> None:
        """Raises ValueError for a value out of the range."""
        _check_number(self, value)

    def apply(self, records: Mapping[str, NDArray[np.void]], value: Value) -> None:
        """Replace the number in its record."""
        records[self.column.name][self.member] = value


@dataclass(frozen=True, slots=True, kw_only=True)
class DetectorCondition:
    """A number or a list that changes more than one place of the constants, such as the position of half a detector.

    name, low, high, unit, required: as in Condition. columns: the columns that it changes. change: changes their
    records, by column name, in place; columns that a sequence does not read are missing. choices: the only possible
    numbers, if there are any. lists: the value is a list of integers in the range, ascending, without repetition.
    member: the number in the records of a sign that data can contradict. more, fewer: the histograms of this sign: with
    the right one, the first has more entries.
    """

    name: str
    columns: tuple[Column, ...]
    change: Callable[[Mapping[str, NDArray[np.void]], Any], None]
    low: float
    high: float
    unit: str = ""
    choices: tuple[float, ...] = ()
    lists: bool = False
    required: bool = False
    member: str = ""
    more: str = ""
    fewer: str = ""

    def check(self, value: Value) -> None:
        """Raises ValueError for a value of the wrong kind or out of the range."""
        if not self.lists:
            _check_number(self, value)
            if self.choices and value not in self.choices:
                raise ValueError(f"{value:g}, expected {' or '.join(f'{choice:g}' for choice in self.choices)}")
            return
        if not isinstance(value, tuple):
            raise ValueError(f"{value:g}, expected a list of integers")
        for number, following in zip(value, (*value[1:], None), strict=True):
            if not self.low <= number <= self.high:
                raise ValueError(f"{number}, expected {self.low:g} to {self.high:g}")
            if following is not None and following <= number:
                raise ValueError(f"{following} after {number}, expected ascending numbers, each once")

    def apply(self, records: Mapping[str, NDArray[np.void]], value: Value) -> None:
        """Change the records."""
        self.change(records, value)


AnyCondition = Condition | DetectorCondition


def _check_number(condition: AnyCondition, value: Value) -> None:
    if isinstance(value, tuple):
        raise ValueError("a list, expected a number")
    if not condition.low <= value <= condition.high:
        found = f"{value:g} {condition.unit}".rstrip()
        raise ValueError(f"{found}, expected {condition.low:g} to {condition.high:g}")


def parse_conditions(table: object) -> Values:
    """The conditions of a table. Raises TriggerConfigError, which names the key."""
    if not isinstance(table, Mapping):
        raise TriggerConfigError("conditions: a table of numbers is expected")
    return tuple(sorted((name, _parse_value(f"conditions.{name}", value)) for name, value in table.items()))


def _parse_value(key: str, value: object) -> Value:
    if not isinstance(value, list):
        return float(finite_number(key, value))
    if len(value) > MAX_CHANNELS:
        raise TriggerConfigError(f"{key}: {len(value)} numbers, expected at most {MAX_CHANNELS}")
    for number in value:
        if type(number) is not int:
            raise TriggerConfigError(f"{key}: {shown(number)} is not an integer")
    return tuple(value)


def check_values(values: Values, known: Sequence[AnyCondition]) -> None:
    """Raises TriggerConfigError for an unknown condition and a value out of its range."""
    by_name = {condition.name: condition for condition in known}
    for name, value in values:
        condition = by_name.get(name)
        if condition is None:
            hint = nearest(name, by_name) if by_name else "this chain has none"
            raise TriggerConfigError(f"conditions.{shown(name)}: unknown condition; {hint}")
        try:
            condition.check(value)
        except ValueError as error:
            raise TriggerConfigError(f"conditions.{name}: {error}") from error


def check_conditions(values: Values, known: Sequence[AnyCondition], columns: Iterable[Column]) -> None:
    """Raises TriggerConfigError for an unknown condition, a value out of its range, and a condition that changes no
    column that the sequence reads."""
    check_values(values, known)
    acting = {name for name, _ in acting_values(values, known, columns)}
    for condition in known:
        if condition.name in dict(values) and condition.name not in acting:
            names = ", ".join(column.name for column in condition.columns)
            raise TriggerConfigError(f"conditions.{condition.name}: the sequence does not read {names}")


def acting_values(values: Values, known: Sequence[AnyCondition], columns: Iterable[Column]) -> Values:
    """Those of the values that change a column of a sequence; an empty list changes nothing."""
    read = set(columns)
    act = {condition.name for condition in known if not read.isdisjoint(condition.columns)}
    return tuple((name, value) for name, value in values if name in act and value != ())


def measured_quantities(
    constants: Mapping[str, NDArray[np.uint8]], known: Sequence[AnyCondition], histograms: Collection[str]
) -> tuple[MeasuredQuantity, ...]:
    """The conditions that one of these histograms measures or checks, with their values in the constants.

    A quantity that only checks a condition has the name of its histogram, or that of the condition if it is a sign.
    """
    medians = tuple(
        MeasuredQuantity(
            name=condition.name if follows else histogram,
            histogram=histogram,
            configured=float(constants[condition.column.name].view(condition.column.dtype)[condition.member].item()),
            tolerance=condition.tolerance,
            low=condition.low,
            high=condition.high,
            unit=condition.unit,
            follows=follows,
        )
        for condition in known
        if isinstance(condition, Condition) and condition.column.name in constants
        for follows, names in ((True, (condition.histogram,)), (False, condition.checked_by))
        for histogram in names
        if histogram in histograms
    )
    signs = tuple(
        MeasuredQuantity(
            name=condition.name,
            histogram=condition.more,
            opposite=condition.fewer,
            configured=float(constants[column.name].view(column.dtype)[condition.member].item()),
            # Half the distance of both signs.
            tolerance=1.0,
            low=condition.low,
            high=condition.high,
            unit=condition.unit,
            follows=False,
        )
        for condition in known
        if isinstance(condition, DetectorCondition) and {condition.more, condition.fewer} <= set(histograms)
        for column in [column for column in condition.columns if column.name in constants][:1]
    )
    return medians + signs


def with_conditions(
    constants: Mapping[str, NDArray[np.uint8]], values: Values, known: Sequence[AnyCondition]
) -> Mapping[str, NDArray[np.uint8]]:
    """The constants (u8 by column name) with the values of checked conditions; the given arrays are not changed."""
    if not values:
        return constants
    by_name = {condition.name: condition for condition in known}
    columns = {column.name: column for name, _ in values for column in by_name[name].columns}
    records = {
        name: np.array(constants[name]).view(column.dtype) for name, column in columns.items() if name in constants
    }
    for name, value in values:
        by_name[name].apply(records, value)
    return {**constants, **{name: record.view(np.uint8) for name, record in records.items()}}
