"""Fields of all candidates of events as arrays, such as the pt of all long tracks.

A field has the name that line files give it, with the name of its input before it: `long_tracks.pt`; a field of a
related candidate has the name of the relation between them: `long_tracks.pv.z`. The values are those that a line
compares with its cuts, bit by bit.
"""

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from fnmatch import fnmatchcase
from functools import reduce
from typing import Any

import numpy as np
from numpy.typing import NDArray

from hltnode.processing.framework.batch import BATCH_INPUTS
from hltnode.processing.framework.collections import Column
from hltnode.processing.framework.near_names import SIMILARITY_OF_SHORT_NAMES, near_names
from hltnode.processing.framework.workspace import Workspace
from hltnode.processing.selection.configuration.trigger_config import TriggerConfig
from hltnode.processing.selection.errors import LineError
from hltnode.processing.selection.evaluation.lines import Evaluator, pieces
from hltnode.processing.selection.expressions.expression import Expression
from hltnode.processing.selection.expressions.nodes import Kind, Node, Variable, columns_of, recording
from hltnode.processing.selection.expressions.source_position import fail
from hltnode.processing.selection.expressions.units import NO_UNIT
from hltnode.processing.selection.lines.inputs import Candidate, Input, ModelField
from hltnode.processing.selection.trigger_chain import TriggerChain

DECISIONS = "decisions"
"""The input of the fields that say whether a line selected an event."""
ACCEPTED = "accepted"
"""The field of DECISIONS that says whether any line did."""
WILDCARDS = "*?["


@dataclass(frozen=True, slots=True)
class Field:
    """A field of an input.

    name: input and field, `long_tracks.pt`. unit: empty without one. of_event: whether each event has one value instead
    of one for each candidate.
    """

    name: str
    unit: str
    description: str
    of_event: bool

    @property
    def input(self) -> str:
        """The name of the input."""
        return self.name.partition(".")[0]

    @property
    def short_name(self) -> str:
        """The name within the input."""
        return self.name.partition(".")[2]


@dataclass(frozen=True, slots=True)
class FieldValues:
    """The values of some events.

    counts: i64[events] for each input with candidates, their number in each event. values: for each field one value per
    event or per candidate, events in order; float32, uint32 or bool, and any type for values of output lists. A
    condition that a NaN leaves open is false.
    """

    n_events: int
    counts: Mapping[str, NDArray[np.int64]]
    values: Mapping[str, NDArray[Any]]


def joined(parts: Sequence[FieldValues]) -> FieldValues:
    """The values of consecutive events as one. `parts` is not empty."""
    first = parts[0]
    return FieldValues(
        sum(part.n_events for part in parts),
        {name: np.concatenate([part.counts[name] for part in parts]) for name in first.counts},
        {name: np.concatenate([part.values[name] for part in parts]) for name in first.values},
    )


class FieldReader:
    """Reads fields from the batches of an engine that retains `columns`.

    names: fields; `*`, `?` and `[...]` stand for any characters, as in `long_tracks.*`, which omits related candidates.
    None: the `usual_fields` of the chain, as far as the sequence makes them.

    Raises ValueError for a field that the chain does not have, or that the sequence of the configuration cannot make.
    """

    def __init__(self, chain: TriggerChain, trigger: TriggerConfig, names: Sequence[str] | None) -> None:
        self._lines = trigger.line_names
        self._nodes: dict[str, Node] = {}
        self._inputs: Mapping[str, Input] = chain.inputs
        self._bits: dict[str, int] = {}
        self._lists: dict[str, tuple[str, str]] = {}
        """List and value of each field of an output list."""
        chain = chain.with_sequence(trigger.sequence)
        made = {*BATCH_INPUTS, *chain.sequence.columns}
        fields: dict[str, Field] = {}
        usual = names is None
        names = chain.usual_fields if names is None else names
        for name, one_of_many in _expanded(chain, self._lines, names):
            field = self._add(chain, name)
            missing = [column for column in self._columns_of(name) if column not in made] if name in self._nodes else []
            if not missing:
                fields[name] = field
            elif usual or one_of_many:
                del self._nodes[name]
            else:
                of = f"sequence {trigger.sequence}" if trigger.sequence else "the default sequence"
                reads = missing[0].name.rpartition(".")[0]
                raise ValueError(f"field {name!r}: it reads {reads}, which {of} does not make")
        if not fields:
            raise ValueError(f"expected at least one field that the sequence makes, got {', '.join(names) or 'none'}")
        self.fields = tuple(fields.values())
        of_lists = dict.fromkeys(owner for owner, _ in self._lists.values())
        self._list_values = {
            each.name: {name: value.dtype for name, value in each.values.items()}
            for each in chain.lists
            if each.name in of_lists
        }
        owners = {name.partition(".")[0] for name in self._nodes}
        self._inputs = {name: of for name, of in chain.inputs.items() if name in owners}

    @property
    def columns(self) -> tuple[str, ...]:
        """Names of the columns that are read; an engine must retain them."""
        return tuple(dict.fromkeys(column.name for name in self._nodes for column in self._columns_of(name)))

    @property
    def reads_lists(self) -> bool:
        """Whether fields of output lists are read; the engine must deliver them."""
        return bool(self._lists)

    @property
    def empty(self) -> FieldValues:
        """The values of no event."""
        kinds = {Kind.FLOAT: np.float32, Kind.INT: np.uint32, Kind.BOOL: np.bool_}
        dtypes: dict[str, Any] = {name: kinds[node.kind] for name, node in self._nodes.items()}
        dtypes |= {name: self._list_values[owner][value] for name, (owner, value) in self._lists.items()}
        counted = [name for name, of in self._inputs.items() if of.collection is not None]
        return FieldValues(
            0,
            {name: np.zeros(0, np.int64) for name in (*counted, *self._list_values)},
            {field.name: np.zeros(0, dtypes.get(field.name, np.bool_)) for field in self.fields},
        )

    def read(self, workspace: Workspace) -> FieldValues:
        """The values of a completed batch."""
        n = workspace.n_events
        columns = _Content(workspace, [one for one in self._inputs.values() if one.collection is not None])
        counts: dict[str, NDArray[np.int64]] = {}
        values: dict[str, NDArray[Any]] = {}
        for name, of in self._inputs.items():
            nodes = {field: node for field, node in self._nodes.items() if field.partition(".")[0] == name}
            number, of_fields = _values(of, list(nodes.values()), columns, n)
            if of.collection is not None:
                counts[name] = number
            values.update(zip(nodes, of_fields, strict=True))
        lists = workspace.output.lists if self._lists else {}
        counts |= {name: lists[name].counts for name in self._list_values}
        values |= {name: lists[owner].values[value].copy() for name, (owner, value) in self._lists.items()}
        for name, bit in self._bits.items():
            words = workspace.output.lines
            fired = workspace.output.accepted if bit < 0 else words[:, bit // 32] >> np.uint32(bit % 32) & np.uint32(1)
            values[name] = fired.astype(np.bool_)
        return FieldValues(n, counts, {field.name: values[field.name] for field in self.fields})

    def _add(self, chain: TriggerChain, name: str) -> Field:
        owner, _, path = name.partition(".")
        if owner == DECISIONS:
            self._bits[name] = -1 if path == ACCEPTED else self._lines.index(path)
            text = "true if a line selects the event" if path == ACCEPTED else f"true if {path} selects the event"
            return Field(name, "", text, of_event=True)
        if owner not in chain.inputs:
            listed = next(each for each in chain.lists if each.name == owner).values[path]
            self._lists[name] = owner, path
            return Field(name, listed.unit, listed.text, of_event=False)
        of = chain.inputs[owner]
        value, description = _field_of(of, name, path)
        self._nodes[name] = value.node
        unit = "" if value.node.unit == NO_UNIT else str(value.node.unit)
        return Field(name, unit, description, of_event=of.collection is None)

    def _columns_of(self, name: str) -> tuple[Column, ...]:
        of = self._inputs[name.partition(".")[0]]
        counted = () if of.count is None else (of.count,)
        read = columns_of((self._nodes[name], _condition(of)), counted)
        placements = [column.collection.placement for column in read if column.collection is not None]
        return (*read, *(place.offsets for place in placements if place is not None and place.offsets is not None))


def usual_names(chain: TriggerChain, trigger: TriggerConfig, rows: str) -> tuple[str, ...] | None:
    """The usual fields of the candidates of an input and of events; all fields of an input that has no usual ones.

    None for a name that is no input with candidates and no output list.
    """
    if rows not in {field.input for field in described_fields(chain) if not field.of_event}:
        return None
    usual = FieldReader(chain, trigger, None).fields
    of_rows = tuple(field.name for field in usual if field.input == rows) or (f"{rows}.*",)
    return (*of_rows, *(field.name for field in usual if field.of_event))


def described_fields(chain: TriggerChain) -> Iterator[Field]:
    """The public fields of all inputs of a chain, without those of related candidates, and of its output lists."""
    for name, of in chain.inputs.items():
        for field, unit, text in of.describe():
            if isinstance(of.fields[field], ModelField):
                continue  # it has a value only in lines, where a configuration names its trees
            value = getattr(of.candidate(), field)
            if isinstance(value, Expression):
                known = "" if value.node.unit == NO_UNIT else unit
                yield Field(f"{name}.{field}", known, text, of_event=of.collection is None)
    for each in chain.lists:
        for value, listed in each.values.items():
            yield Field(f"{each.name}.{value}", listed.unit, listed.text, of_event=False)


class _Content(Mapping[Column, NDArray[Any]]):
    """The used parts of columns of a batch, each fetched when it is first read."""

    def __init__(self, workspace: Workspace, inputs: Sequence[Input]) -> None:
        self._workspace = workspace
        self._content: dict[Column, NDArray[Any]] = {}
        self._counts = {of.collection: of.count for of in inputs}

    def __getitem__(self, column: Column) -> NDArray[Any]:
        if column not in self._content:
            self._content[column] = self._workspace.fetch(column.name, self._used(column))
        return self._content[column]

    def _used(self, column: Column) -> int | None:
        """Number of elements in use; None: all, where the number of objects is unknown."""
        n = self._workspace.n_events
        if column.of_event:
            return n * column.width + column.extra
        count = self._counts.get(column.collection)
        if count is None or column.collection is None or column.collection.placement is None:
            return None
        placement = column.collection.placement
        first = placement.first(None if placement.offsets is None else self[placement.offsets], n)
        # At least one element, because the index of an absent object is clipped to the content.
        return max(1, int((first + self[count][:n]).max(initial=0))) * column.width

    def __iter__(self) -> Iterator[Column]:
        return iter(self._content)

    def __len__(self) -> int:
        return len(self._content)


def _values(
    of: Input, nodes: Sequence[Node], columns: Mapping[Column, NDArray[Any]], n_events: int
) -> tuple[NDArray[np.int64], list[NDArray[Any]]]:
    """The number of candidates of each event, and the values of each node for all candidates."""
    variable = of.variable(0)
    condition = _condition(of)
    count = np.zeros(n_events, np.int64)
    found: list[list[NDArray[Any]]] = [[] for _ in nodes]
    variables: list[Variable] = [] if variable is None else [variable]
    for events in pieces(variables, [*nodes, condition], columns, n_events):
        event, of_nodes = Evaluator(columns, n_events, events).values_of(variable, nodes, condition)
        count += np.bincount(event, minlength=n_events)
        for values, more in zip(found, of_nodes, strict=True):
            values.append(more)
    return count, [np.concatenate(values) for values in found]


def _condition(of: Input) -> Node:
    with recording():
        return of.condition(of.candidate())


def _field_of(of: Input, name: str, path: str) -> tuple[Expression, str]:
    """The value of a field and its description."""
    *relations, last = path.split(".")
    try:
        with recording():
            candidate = reduce(_related, relations, of.candidate())
            value = getattr(candidate, last)
    except LineError as error:
        # The place in a line file that follows in brackets is of no use here, nor is the name of the last part.
        text = str(error).rpartition(" (")[0] or str(error)
        raise ValueError(f"field {name!r}: {text.removeprefix(f'field {last!r}: ')}") from error
    if isinstance(value, Candidate):
        among = ", ".join(f"{name}.{each}" for each in list(dir(value))[:3])
        raise ValueError(
            f"field {name!r}: it is a candidate of {value._input.name}: choose one of its fields ({among}, …)"
        )
    texts = []
    for part in (*relations, last):
        texts.append(of.fields[part].description)
        of = getattr(of.fields[part], "input", of)
    return value, ": ".join(texts)


def _related(candidate: Candidate, relation: str) -> Candidate:
    found = getattr(candidate, relation)
    if not isinstance(found, Candidate):
        fail(f"{relation} is a number and has no fields")
    return found


def _expanded(chain: TriggerChain, lines: Sequence[str], names: Sequence[str]) -> Iterator[tuple[str, bool]]:
    """The names without wildcards, and whether a wildcard stands for them. Raises ValueError for unknown names."""
    public = [field.name for field in described_fields(chain)]
    public += [f"{DECISIONS}.{name}" for name in (ACCEPTED, *lines)]
    for name in names:
        owner, _, path = name.partition(".")
        if any(character in name for character in WILDCARDS):
            matching = [field for field in public if fnmatchcase(field, name)]
            if not matching and names is not chain.usual_fields:
                raise ValueError(f"field {name!r}: no field of chain {chain.name} matches it")
            yield from ((field, True) for field in matching)
        elif not path or (owner != DECISIONS and owner not in chain.inputs and name not in public):
            near = near_names(name, public, similarity=SIMILARITY_OF_SHORT_NAMES)
            inputs = ", ".join((*chain.inputs, DECISIONS))
            raise ValueError(
                f"field {name!r}: expected INPUT.FIELD with an input of chain {chain.name} ({inputs})"
                + (f"; the nearest are {', '.join(near)}" if near else "")
            )
        elif owner == DECISIONS and path != ACCEPTED and path not in lines:
            near = near_names(path, lines, similarity=SIMILARITY_OF_SHORT_NAMES)
            raise ValueError(
                f"field {name!r}: the configuration has no such line"
                + (f"; the nearest are {', '.join(near)}" if near else "")
            )
        else:
            yield name, False
