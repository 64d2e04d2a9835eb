"""Operations of expressions as trees of nodes, with types and units. Nodes of equal content are one object, so an
expression that several lines share is computed once."""

from collections.abc import Iterable, Iterator
from contextlib import contextmanager
from contextvars import ContextVar
from dataclasses import dataclass
from enum import Enum, auto
from typing import Any
from weakref import WeakValueDictionary

import numpy as np

from hltnode.processing.framework.collections import Collection, Column
from hltnode.processing.selection.expressions.source_position import fail
from hltnode.processing.selection.expressions.units import NO_UNIT, Unit
from hltnode.processing.selection.models.table import ModelTable

MAX_DEPTH = 300
"""Maximum depth of an expression in operations."""
MAX_NODES = 5_000
"""Maximum number of operations of one line."""
MAX_LEVEL = 2
"""Maximum nesting of loops over collections for each candidate: a line on tracks may test pairs of other tracks, but
not triples, because a large event has billions of them."""


class Kind(Enum):
    """Kind of the value of a node."""

    BOOL = "true or false"
    INT = "a count or bits"
    FLOAT = "a number"


class Op(Enum):
    """Operation of a node on its arguments. Every number is single precision, every count has 32 bits."""

    CONST = auto()
    INDEX = auto()
    """The number, in its event, of the candidate that a variable stands for."""
    LOAD = auto()
    """An element of a column; the argument is the number of the object in its event.

    Columns of events have no argument.
    """
    TO_FLOAT = auto()
    ADD = auto()
    SUB = auto()
    MUL = auto()
    DIV = auto()
    NEG = auto()
    ABS = auto()
    SQRT = auto()
    LOG = auto()
    EXP = auto()
    ATAN2 = auto()
    MIN = auto()
    MAX = auto()
    WHERE = auto()
    BITS = auto()
    REMAINDER = auto()
    """Remainder of a count divided by a constant count other than 0."""
    TREES = auto()
    """The sum of an ensemble of decision trees for its features."""
    NETWORK = auto()
    """The response of a dense network for its features."""
    LESS = auto()
    LESS_EQUAL = auto()
    EQUAL = auto()
    AND = auto()
    OR = auto()
    NOT = auto()
    COUNT = auto()
    """Number of objects of a collection for which the argument is true."""
    ANY = auto()
    """Whether the argument is true for at least one object."""


@dataclass(frozen=True, slots=True)
class Variable:
    """Stands for each object of a collection in turn. `level` distinguishes the variables of one expression."""

    collection: Collection
    count: Column
    level: int


@dataclass(frozen=True, slots=True)
class Element:
    """Source of a load: a column, the member of its records, and the element of an object."""

    column: Column
    member: str | None = None
    element: int = 0


class Node:
    """One operation. Nodes of the same content are the same object.

    free: variables that the value depends on. may_be_unknown: whether a NaN can make a truth value unknown.
    """

    __slots__ = ("__weakref__", "args", "depth", "free", "kind", "may_be_unknown", "op", "payload", "unit")

    def __init__(self, op: Op, args: tuple["Node", ...], kind: Kind, unit: Unit, payload: Any) -> None:
        self.op: Op = op
        self.args: tuple[Node, ...] = args
        self.kind = kind
        self.unit = unit
        self.payload = payload
        self.depth: int = 1 + max((arg.depth for arg in args), default=0)
        free = frozenset().union(*(arg.free for arg in args)) if args else frozenset()
        if op is Op.INDEX:
            free = free | {payload}
        elif op in (Op.COUNT, Op.ANY):
            free = free - {payload}
        self.free: frozenset[Variable] = free
        if op in (Op.LESS, Op.LESS_EQUAL, Op.EQUAL):
            self.may_be_unknown = args[0].kind is Kind.FLOAT
        elif op is Op.COUNT:
            self.may_be_unknown = False
        else:
            self.may_be_unknown = kind is Kind.BOOL and any(arg.may_be_unknown for arg in args)


_nodes: WeakValueDictionary[tuple[Any, ...], Node] = WeakValueDictionary()
_recorded: ContextVar[list[int] | None] = ContextVar("recorded", default=None)


def node(op: Op, args: tuple[Node, ...] = (), *, kind: Kind, unit: Unit = NO_UNIT, payload: Any = None) -> Node:
    """The node of this content. Raises LineError for a line with too many or too deeply nested operations."""
    key = (op, tuple(id(arg) for arg in args), kind, unit, payload)
    found = _nodes.get(key)
    if found is None:
        found = _nodes[key] = Node(op, args, kind, unit, payload)
    if found.depth > MAX_DEPTH:
        fail(f"more than {MAX_DEPTH} operations follow one another")
    recorded = _recorded.get()
    if recorded is not None:
        recorded[0] += 1
        if recorded[0] > MAX_NODES:
            fail(f"more than {MAX_NODES} operations")
    return found


@contextmanager
def recording() -> Iterator[None]:
    """Counts the operations of one line."""
    token = _recorded.set([0])
    try:
        yield
    finally:
        _recorded.reset(token)


def postorder(roots: "list[Node] | tuple[Node, ...]") -> list[Node]:
    """All nodes below some, each once, arguments before their users."""
    found: dict[Node, None] = {}
    stack = [(root, False) for root in reversed(roots)]
    while stack:
        at, done = stack.pop()
        if at in found:
            continue
        if done:
            found[at] = None
        else:
            stack.append((at, True))
            stack += [(arg, False) for arg in reversed(at.args) if arg not in found]
    return list(found)


def of_candidate_alone(root: Node, candidate: Variable | None) -> Node:
    """The node, if it depends only on the candidate, or on no object for None. Raises LineError."""
    strangers = {variable.collection.name for variable in root.free - {candidate}}
    if strangers:
        fail(f"it depends on an object of {', '.join(sorted(strangers))} that is not its candidate")
    return root


def columns_of(roots: tuple[Node, ...], more: tuple[Column, ...] = ()) -> tuple[Column, ...]:
    """The distinct columns that some expressions read."""
    found = dict.fromkeys(more)
    for at in postorder(roots):
        if isinstance(at.payload, Element):
            found.setdefault(at.payload.column)
        elif isinstance(at.payload, Variable):
            found.setdefault(at.payload.count)
    return tuple(found)


def models_of(roots: Iterable[Node]) -> tuple[ModelTable, ...]:
    """The distinct tables of models of some expressions, by digest."""
    found = {at.payload.digest: at.payload for at in postorder(list(roots)) if isinstance(at.payload, ModelTable)}
    return tuple(found[digest] for digest in sorted(found))


def constant(value: float | int | bool, unit: Unit = NO_UNIT, kind: Kind = Kind.FLOAT) -> Node:
    """A constant, rounded to single precision. Raises LineError if it is not finite."""
    if kind is Kind.FLOAT:
        with np.errstate(over="ignore"):
            value = float(np.float32(value))
        if not np.isfinite(value):
            fail("a constant that single precision cannot hold")
        payload: float | int | str = value.hex()  # distinguishes 0.0 and -0.0
    else:
        payload = int(value)
    return node(Op.CONST, kind=kind, unit=unit, payload=payload)
