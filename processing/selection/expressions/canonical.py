"""Recorded operations as text, and back. The TCK hashes this text, and its document contains it.

There is one text per operation; arguments are indices of earlier operations:

    INDEX long_tracks long_tracks.count 0       the candidate: collection, column of its counts, level of nesting
    LOAD long_tracks.pt[0] 0                    column, element of the object, member of a record behind a dot
    CONST number 500                            number, count or bool; 9 digits are enough for single precision
    LESS 2 1
    TREES 0123456789abcdef 1 3                  digest of an ensemble of decision trees, then its features
    NETWORK 0123456789abcdef 1 3                digest of a network, then its features

Units are omitted: they are checked when a line is recorded, and do not affect decisions.
"""

import re
from collections.abc import Iterable, Sequence

import numpy as np

from hltnode.processing.framework.collections import F32, Column
from hltnode.processing.selection.errors import LineError, shown
from hltnode.processing.selection.expressions.expression import as_node, not_a_number
from hltnode.processing.selection.expressions.nodes import (
    MAX_LEVEL,
    Element,
    Kind,
    Node,
    Op,
    Variable,
    constant,
    node,
    of_candidate_alone,
    postorder,
    recording,
)
from hltnode.processing.selection.expressions.source_position import fail
from hltnode.processing.selection.expressions.units import NO_UNIT
from hltnode.processing.selection.models.ensemble import Ensemble
from hltnode.processing.selection.models.networks.network import Network
from hltnode.processing.selection.models.table import ModelTable

_FLOAT, _INT, _BOOL = Kind.FLOAT, Kind.INT, Kind.BOOL
_KIND_NAMES = {_FLOAT: "number", _INT: "count", _BOOL: "bool"}

_TYPES: dict[Op, tuple[tuple[tuple[Kind, ...], Kind], ...]] = {
    Op.TO_FLOAT: (((_INT,), _FLOAT),),
    **dict.fromkeys((Op.ADD, Op.SUB, Op.MUL, Op.DIV, Op.ATAN2, Op.MIN, Op.MAX), (((_FLOAT, _FLOAT), _FLOAT),)),
    **dict.fromkeys((Op.NEG, Op.ABS, Op.SQRT, Op.LOG, Op.EXP), (((_FLOAT,), _FLOAT),)),
    Op.WHERE: (((_BOOL, _FLOAT, _FLOAT), _FLOAT), ((_BOOL, _INT, _INT), _INT)),
    **dict.fromkeys((Op.BITS, Op.REMAINDER), (((_INT, _INT), _INT),)),
    **dict.fromkeys((Op.LESS, Op.LESS_EQUAL, Op.EQUAL), (((_FLOAT, _FLOAT), _BOOL), ((_INT, _INT), _BOOL))),
    **dict.fromkeys((Op.AND, Op.OR), (((_BOOL, _BOOL), _BOOL),)),
    Op.NOT: (((_BOOL,), _BOOL),),
    Op.COUNT: (((_BOOL,), _INT),),
    Op.ANY: (((_BOOL,), _BOOL),),
}
"""Argument and result kinds of operations with arguments."""

_PAYLOADS = {Op.CONST: 2, Op.INDEX: 3, Op.LOAD: 1, Op.COUNT: 3, Op.ANY: 3, Op.TREES: 1, Op.NETWORK: 1}
"""Number of words between the operation and its arguments."""
_MODELS: dict[Op, type[ModelTable]] = {Op.TREES: Ensemble, Op.NETWORK: Network}
_ELEMENT = re.compile(r"([^\[\]]+)\[(\d{1,5})\](?:\.(\w+))?")


def canonical(root: Node) -> list[str]:
    """An expression as a list of distinct operations."""
    places: dict[str, int] = {}
    place: dict[Node, int] = {}
    for at in postorder((root,)):
        text = " ".join((at.op.name, *_payload(at), *(str(place[arg]) for arg in at.args)))
        place[at] = places.setdefault(text, len(places))
    return list(places)


def _payload(at: Node) -> tuple[str, ...]:
    match at.payload:
        case None:
            return ()
        case Element(column, member, element):
            return (f"{column.name}[{element}]" + (f".{member}" if member else ""),)
        case Variable() as variable:
            return variable_words(variable)
        case ModelTable() as model:
            return (model.digest,)
        case value if at.kind is Kind.FLOAT:
            return "number", f"{float.fromhex(value):.9g}"
        case value:
            return _KIND_NAMES[at.kind], str(value)


def variable_words(variable: Variable) -> tuple[str, str, str]:
    """The words of a variable: collection, column of its counts, level."""
    return variable.collection.name, variable.count.name, str(variable.level)


class Reader:
    """Makes expressions from their canonical form, on the columns of a sequence, with some models."""

    def __init__(self, columns: Iterable[Column], models: Iterable[ModelTable] = ()) -> None:
        self._columns = {column.name: column for column in columns}
        self._models = {model.digest: model for model in models}
        self._collections = {c.collection.name: c.collection for c in self._columns.values() if c.collection}

    def with_columns(self, columns: Iterable[Column]) -> "Reader":
        """The reader with more columns."""
        return Reader((*self._columns.values(), *columns), self._models.values())

    def with_models(self, models: Iterable[ModelTable]) -> "Reader":
        """The reader with other models."""
        return Reader(self._columns.values(), models)

    def condition(self, operations: Sequence[object], candidate: Variable | None) -> Node:
        """The result of the last operation, a truth value of the candidate. Raises LineError."""
        return of_candidate_alone(self.value(operations, Kind.BOOL), candidate)

    def value(self, operations: Sequence[object], kind: Kind) -> Node:
        """The result of the last operation, which must be of a kind. Raises LineError."""
        nodes: list[Node] = []
        with recording():
            for i, text in enumerate(operations):
                try:
                    nodes.append(self._operation(text, nodes))
                except LineError as error:
                    raise LineError(f"selection[{i}]: {error}") from None
        if not nodes or nodes[-1].kind is not kind:
            raise LineError(f"selection: the last operation must be {kind.value}")
        return nodes[-1]

    def variable(self, words: Sequence[str]) -> Variable:
        """The variable from its `variable_words`. Raises LineError."""
        collection, count, level = words
        column = self._column(count)
        if collection not in self._collections or not column.of_event or column.dtype.kind != "u":
            fail(f"{collection} counted by {count}: the sequence has no such candidates")
        return Variable(self._collections[collection], column, _integer(level, MAX_LEVEL + 1))

    def _column(self, name: str) -> Column:
        if name not in self._columns:
            fail(f"the sequence does not make {name}")
        return self._columns[name]

    def _operation(self, text: object, nodes: Sequence[Node]) -> Node:
        if not isinstance(text, str):
            fail("an operation must be a text")
        name, *words = text.split(" ")
        if name not in Op.__members__:
            fail(f"unknown operation {name!r}")
        op = Op[name]
        n = _PAYLOADS.get(op, 0)
        payload, args = words[:n], tuple(nodes[_integer(word, len(nodes))] for word in words[n:])
        if len(payload) != n:
            fail(f"{text!r}: words are missing")
        if op in _TYPES:
            return self._of_arguments(op, payload, args)
        if op is Op.LOAD:
            return self._load(payload[0], args)
        if op in _MODELS:
            return self._output_of_model(op, payload[0], args)
        if args:
            fail(f"{text!r}: {name} has no arguments")
        if op is Op.INDEX:
            return node(op, kind=Kind.INT, payload=self.variable(payload))
        return _constant(*payload)

    def _of_arguments(self, op: Op, payload: Sequence[str], args: tuple[Node, ...]) -> Node:
        kinds = tuple(arg.kind for arg in args)
        result = dict(_TYPES[op]).get(kinds)
        if result is None:
            fail(f"{op.name} of {', '.join(_KIND_NAMES[kind] for kind in kinds) or 'nothing'}")
        if op is Op.REMAINDER and (args[1].op is not Op.CONST or args[1].payload == 0):
            fail("REMAINDER: the divisor must be a constant other than 0")
        return node(op, args, kind=result, payload=self.variable(payload) if payload else None)

    def _output_of_model(self, op: Op, digest: str, args: tuple[Node, ...]) -> Node:
        model = self._models.get(digest)
        if not isinstance(model, _MODELS[op]):
            fail(f"{op.name} {shown(digest)}: there is no such model")
        if len(args) != model.n_features or any(arg.kind is not Kind.FLOAT for arg in args):
            fail(f"{op.name} {digest}: {model.n_features} numbers are expected")
        return node(op, args, kind=Kind.FLOAT, payload=model)

    def _load(self, text: str, args: tuple[Node, ...]) -> Node:
        matched = _ELEMENT.fullmatch(text)
        if matched is None:
            fail(f"{text!r}: an element of a column is expected")
        name, number, member = matched.groups()
        column = self._column(name)
        if (column.dtype.names is None) != (member is None) or (member and member not in (column.dtype.names or ())):
            fail(f"{text!r}: unknown member")
        if tuple(arg.kind for arg in args) != (() if column.of_event else (Kind.INT,)):
            fail(f"{text!r}: only columns of objects take the number of an object")
        dtype = (column.dtype if member is None else column.dtype[member]).base
        kind = Kind.FLOAT if dtype == F32 else Kind.INT
        return node(Op.LOAD, args, kind=kind, payload=Element(column, member, _integer(number, column.width)))


def _constant(kind: str, text: str) -> Node:
    if kind == "number":
        try:
            value = float(text)
        except ValueError:
            fail(f"{text!r} is not a number")
        return not_a_number(NO_UNIT) if np.isnan(value) else constant(value)
    if kind == "count":
        return as_node(_integer(text, 2**32), Kind.INT)
    if kind != "bool":
        fail(f"{kind!r}: a constant must be number, count or bool")
    return as_node(bool(_integer(text, 2)))


def _integer(text: str, end: int) -> int:
    """A decimal number below `end`."""
    if not re.fullmatch(r"[0-9]{1,10}", text) or int(text) >= end:
        fail(f"{text!r}: a number from 0 to {end - 1} is expected")
    return int(text)
