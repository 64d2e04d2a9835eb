"""Inputs of lines: collections of candidates, and the fields that a selection reads.

A detector declares its inputs. A field is an element of a column, an expression of other fields, decision trees of
other fields, or a candidate of another input, such as a track of a vertex or the primary vertex of a track.
"""

from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from contextvars import ContextVar
from dataclasses import dataclass
from typing import Any

from hltnode.processing.framework.collections import F32, Collection, Column
from hltnode.processing.framework.near_names import SIMILARITY_OF_SHORT_NAMES, near_names
from hltnode.processing.selection.expressions.expression import Expression, as_node, not_a_number, output_of, truth
from hltnode.processing.selection.expressions.nodes import MAX_LEVEL, Element, Kind, Node, Op, Variable, node
from hltnode.processing.selection.expressions.source_position import fail
from hltnode.processing.selection.expressions.units import NO_UNIT, Unit
from hltnode.processing.selection.models.ensemble import Ensemble


@dataclass(frozen=True, slots=True)
class ColumnField:
    """A field that is an element of a column: floats with a unit, integers as counts or bits."""

    column: Column
    description: str
    unit: Unit = NO_UNIT
    member: str | None = None
    element: int = 0


@dataclass(frozen=True, slots=True)
class DerivedField:
    """A field computed from other fields."""

    function: Callable[[Any], Expression]
    description: str


@dataclass(frozen=True, slots=True)
class RelatedField:
    """A field that is a candidate of another input. `number` gives its number in the event.

    A number at or above the count of that input means no candidate: its numbers are NaN, its counts 0.
    """

    input: "Input"
    number: ColumnField
    description: str


@dataclass(frozen=True, slots=True)
class ModelField:
    """A field that is the sum of decision trees, whose file a trigger configuration names.

    features: the fields that the trees take, in their order.
    """

    features: tuple[str, ...]
    description: str


FieldOf = ColumnField | DerivedField | RelatedField | ModelField

_models: ContextVar[Mapping[str, Ensemble]] = ContextVar("models", default={})  # noqa: B039 - it is never changed


@contextmanager
def models_of_fields(models: Mapping[str, Ensemble]) -> Iterator[None]:
    """Lines that are made inside have these trees as fields of type ModelField, by name."""
    token = _models.set(models)
    try:
        yield
    finally:
        _models.reset(token)


class Input:
    """Candidates that lines may select.

    collection, count: the collection and its number of objects per event; None for the event itself.
    where: condition that makes an object of the collection a candidate.
    constituents: names of the fields that are its parts, such as the tracks of a vertex. Candidates of a composite have
    no common constituent.
    """

    def __init__(
        self,
        name: str,
        description: str,
        fields: Mapping[str, FieldOf],
        *,
        collection: Collection | None = None,
        count: Column | None = None,
        where: Callable[[Any], Expression] | None = None,
        constituents: tuple[str, ...] = (),
    ) -> None:
        self.name = name
        self.description = description
        self.fields = dict(fields)
        self.collection = collection
        self.count = count
        self.where = where
        self.constituents = constituents

    def those(
        self,
        name: str,
        description: str,
        where: Callable[[Any], Expression],
        more: Mapping[str, FieldOf] | None = None,
    ) -> "Input":
        """The candidates that also satisfy another condition; `more` are fields that only they have."""
        both = where if self.where is None else _both(self.where, where)
        fields = {**self.fields, **(more or {})}
        return Input(
            name,
            description,
            fields,
            collection=self.collection,
            count=self.count,
            where=both,
            constituents=self.constituents,
        )

    def variable(self, level: int) -> Variable | None:
        """The variable that stands for its candidates, None for the event."""
        if self.collection is None or self.count is None:
            return None
        return Variable(self.collection, self.count, level)

    def candidate(self, level: int = 0) -> "Candidate":
        """The stand-in for a candidate."""
        variable = self.variable(level)
        index = None if variable is None else node(Op.INDEX, kind=Kind.INT, payload=variable)
        return Candidate(self, index)

    def describe(self) -> Iterator[tuple[str, str, str]]:
        """Name, unit and description of each public field; a field without a unit gives its kind instead."""
        candidate = self.candidate()
        for name, field in self.fields.items():
            if name.startswith("_"):
                continue
            if isinstance(field, ModelField):
                yield name, Kind.FLOAT.value, field.description
                continue
            value = getattr(candidate, name)
            if isinstance(value, Expression):
                unit = str(value.node.unit) if value.node.unit != NO_UNIT else value.node.kind.value
            else:
                unit = f"of {value._input.name}"
            yield name, unit, field.description

    def condition(self, candidate: "Candidate") -> Node:
        """Whether an object of the collection is a candidate."""
        return truth(True if self.where is None else self.where(candidate), "the condition of an input")

    def __repr__(self) -> str:
        return f"<input {self.name}>"


def _both(one: Callable[[Any], Expression], other: Callable[[Any], Expression]) -> Callable[[Any], Expression]:
    return lambda candidate: one(candidate) & other(candidate)


class Candidate:
    """The stand-in for a candidate of an input: its attributes are the fields."""

    __slots__ = ("_index", "_input", "_made", "_present")

    def __init__(self, of: Input, index: Node | None, present: Node | None = None) -> None:
        self._input = of
        self._index = index
        self._present = present
        """Whether it exists, for fields that may be missing."""
        self._made: dict[str, Any] = {}

    def __getattr__(self, name: str) -> Any:
        if name.startswith("__"):
            raise AttributeError(name)
        if name not in self._made:
            self._made[name] = self._make(name)
        return self._made[name]

    def __dir__(self) -> list[str]:
        return list(self._input.fields)

    def _make(self, name: str) -> Any:
        field = self._input.fields.get(name)
        if field is None:
            near = near_names(name, self._input.fields, similarity=SIMILARITY_OF_SHORT_NAMES)
            known = f"the nearest are {', '.join(near)}" if near else f"there are {', '.join(self._input.fields)}"
            fail(f"field {name!r}: {self._input.name} have no such field; {known}")
        if isinstance(field, DerivedField):
            return field.function(self)
        if isinstance(field, RelatedField):
            return self._related(field)
        if isinstance(field, ModelField):
            return self._of_model(name, field)
        return Expression(self._load(field))

    def _of_model(self, name: str, field: ModelField) -> Expression:
        trees = _models.get().get(name)
        if trees is None:
            fail(
                f"field {name!r}: no model file is configured; a trigger configuration names one as "
                f'[models] {name} = "FILE.json"'
            )
        inputs = tuple(as_node(getattr(self, feature)) for feature in field.features)
        return output_of(trees, inputs)

    def _load(self, field: ColumnField) -> Node:
        dtype = field.column.dtype if field.member is None else field.column.dtype[field.member]
        kind = Kind.FLOAT if dtype.base == F32 else Kind.INT
        args = () if field.column.of_event else (self._index,)
        element = Element(field.column, field.member, field.element)
        value = node(Op.LOAD, args, kind=kind, unit=field.unit, payload=element)  # type: ignore[arg-type]
        if self._present is None:
            return value
        missing = not_a_number(field.unit) if kind is Kind.FLOAT else as_node(0, Kind.INT)
        return node(Op.WHERE, (self._present, value, missing), kind=kind, unit=field.unit)

    def _related(self, field: RelatedField) -> "Candidate":
        assert field.input.count is not None
        found = self._load(field.number)
        count = node(Op.LOAD, kind=Kind.INT, payload=Element(field.input.count))
        present = node(Op.LESS, (found, count), kind=Kind.BOOL)
        if self._present is not None:
            present = node(Op.AND, (self._present, present), kind=Kind.BOOL)
        index = node(Op.WHERE, (present, found, as_node(0, Kind.INT)), kind=Kind.INT)
        return Candidate(field.input, index, present)


def exists(candidate: Candidate) -> Expression:
    """Whether a field refers to an existing candidate: a track may have no primary vertex."""
    present = candidate._present
    return Expression(as_node(True) if present is None else present)


_level: ContextVar[int] = ContextVar("level", default=1)


@contextmanager
def loops_from(level: int) -> Iterator[None]:
    """Searches of collections get this level and the next ones: candidates have the levels before it."""
    token = _level.set(level)
    try:
        yield
    finally:
        _level.reset(token)


def _over(op: Op, kind: Kind, of: Input, condition: Callable[[Any], Any], what: str) -> Expression:
    if of.collection is None:
        fail(f"{what}: candidates are expected, not {of.name}")
    level = _level.get()
    if level > MAX_LEVEL:
        fail(f"{what}: loops over more than {MAX_LEVEL} nested collections")
    token = _level.set(level + 1)
    try:
        candidate = of.candidate(level)
        selected = truth(condition(candidate), what)
    finally:
        _level.reset(token)
    body = node(Op.AND, (of.condition(candidate), selected), kind=Kind.BOOL) if of.where else selected
    return Expression(node(op, (body,), kind=kind, payload=of.variable(level)))


def any_of(of: Input, condition: Callable[[Any], Any]) -> Expression:
    """Whether the condition holds for at least one candidate of the event."""
    return _over(Op.ANY, Kind.BOOL, of, condition, "any_of")


def all_of(of: Input, condition: Callable[[Any], Any]) -> Expression:
    """Whether the condition holds for every candidate of the event; true without candidates."""
    inside = of.those(of.name, of.description, lambda candidate: ~Expression(truth(condition(candidate), "all_of")))
    return ~any_of(inside, lambda _: True)


def count_of(of: Input, condition: Callable[[Any], Any] | None = None) -> Expression:
    """Number of candidates of the event for which the condition holds."""
    return _over(Op.COUNT, Kind.INT, of, condition or (lambda _: True), "count_of")
