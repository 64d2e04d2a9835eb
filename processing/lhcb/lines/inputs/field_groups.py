"""Fields that several inputs have: numbers of columns with the same names, and whether a relation exists."""

from typing import Any

from hltnode.processing.selection.expressions.units import Unit
from hltnode.processing.selection.lines.inputs import (
    ColumnField,
    DerivedField,
    FieldOf,
    exists,
)


def number_fields(columns: dict[str, Any], units: dict[str, tuple[Unit, str]]) -> dict[str, FieldOf]:
    """Fields of columns that have the same name."""
    return {name: ColumnField(columns[name], text, unit) for name, (unit, text) in units.items()}


def has_field(member: str) -> DerivedField:
    return DerivedField(lambda candidate: exists(getattr(candidate, member)), f"true if there is a {member}")
