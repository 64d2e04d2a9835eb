"""Expressions of selection lines, built by Python operators on the fields of a candidate, with types and units.

A selection is ordinary Python on stand-ins for a candidate. Its operations are recorded as a tree of single-precision
operations (`Node`). kernel_code writes a kernel from it, and evaluation computes it with NumPy, with bit-identical
results. Nodes of equal content are one object, so an expression that several lines share is computed once.

Truth has three values. A comparison with a NaN is unknown: neither true nor false; `&`, `|` and `~` keep it unknown
unless the other operand decides (S. C. Kleene, Introduction to Metamathematics, 1952, section 64). An unknown selection
is false, and counted.
"""

import sys
import traceback
from collections.abc import Callable, Iterable, Iterator
from contextlib import contextmanager
from contextvars import ContextVar
from dataclasses import dataclass, field
from enum import Enum, auto
from fractions import Fraction
from pathlib import Path
from types import FrameType
from typing import Any, NoReturn
from weakref import WeakValueDictionary

import numpy as np

from hltnode.processing.framework.collections import Collection, Column
from hltnode.processing.selection.errors import LineError, TriggerConfigError
from hltnode.processing.selection.expressions.units import ANGLE, NO_UNIT, Quantity, Unit
from hltnode.processing.selection.models.ensemble import Ensemble
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


# --- source positions -------------------------------------------------------------------------------------------------

_HERE = Path(__file__).parents[1]


def source_position() -> str:
    """The file and line, outside of `selection`, that is running."""
    frame = _user_frame()
    return f"{Path(frame.f_code.co_filename).name}:{frame.f_lineno}"


def source_folder() -> Path:
    """The folder of the file, outside of `selection`, that is running."""
    return Path(_user_frame().f_code.co_filename).parent


def _user_frame() -> FrameType:
    frame = sys._getframe(1)
    while frame.f_back is not None and (
        Path(frame.f_code.co_filename).is_relative_to(_HERE) or frame.f_code.co_filename.startswith("<")
    ):
        frame = frame.f_back
    return frame


def fail(message: str) -> NoReturn:
    """Raises LineError with the source position."""
    raise LineError(f"{message} ({source_position()})")


_OTHER_FUNCTIONS = (
    "the functions of math and numpy cannot be used on values of events: take log, exp, sqrt, ... of lines"
)


def made_of(function: Callable[[Any], Any], candidate: Any) -> Any:
    """The result of a user's function for a stand-in of a candidate. Raises LineError for all its errors."""
    try:
        return function(candidate)
    except TriggerConfigError:
        raise
    except Exception as error:
        frame = traceback.extract_tb(error.__traceback__)[-1]
        text = _OTHER_FUNCTIONS if "ufunc" in str(error) else f"{type(error).__name__}: {error}"
        raise LineError(f"{text} ({Path(frame.filename).name}:{frame.lineno})") from error


# --- values that the author of a line handles -------------------------------------------------------------------------


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


@dataclass(frozen=True, slots=True, eq=False)
class Expression:
    """A value that a line computes. Operators and the functions of functions.py return new values."""

    node: Node = field(repr=False)

    __array_ufunc__ = None
    """NumPy leaves operators between its numbers and a value to this class."""

    def __add__(self, other: Any) -> "Expression":
        return _sum(Op.ADD, self, other)

    def __radd__(self, other: Any) -> "Expression":
        return _sum(Op.ADD, other, self)

    def __sub__(self, other: Any) -> "Expression":
        return _sum(Op.SUB, self, other)

    def __rsub__(self, other: Any) -> "Expression":
        return _sum(Op.SUB, other, self)

    def __mul__(self, other: Any) -> "Expression":
        return _product(Op.MUL, self, other)

    def __rmul__(self, other: Any) -> "Expression":
        return _product(Op.MUL, other, self)

    def __truediv__(self, other: Any) -> "Expression":
        return _product(Op.DIV, self, other)

    def __rtruediv__(self, other: Any) -> "Expression":
        return _product(Op.DIV, other, self)

    def __pow__(self, power: Any) -> "Expression":
        if power == 0.5:
            return square_root(self)
        if not isinstance(power, int) or not 2 <= power <= 8:
            fail(f"power {power!r}: 0.5 or an integer from 2 to 8 is expected")
        product = self
        for _ in range(power - 1):
            product = product * self
        return product

    def __neg__(self) -> "Expression":
        value = number(self, "-")
        return Expression(node(Op.NEG, (value,), kind=Kind.FLOAT, unit=value.unit))

    def __abs__(self) -> "Expression":
        value = number(self, "abs")
        return Expression(node(Op.ABS, (value,), kind=Kind.FLOAT, unit=value.unit))

    def __lt__(self, other: Any) -> "Expression":
        return _comparison(Op.LESS, "<", self, other)

    def __le__(self, other: Any) -> "Expression":
        return _comparison(Op.LESS_EQUAL, "<=", self, other)

    def __gt__(self, other: Any) -> "Expression":
        return _comparison(Op.LESS, ">", other, self)

    def __ge__(self, other: Any) -> "Expression":
        return _comparison(Op.LESS_EQUAL, ">=", other, self)

    def __eq__(self, other: object) -> "Expression":  # type: ignore[override]
        return _comparison(Op.EQUAL, "==", self, other)

    def __ne__(self, other: object) -> "Expression":  # type: ignore[override]
        return ~_comparison(Op.EQUAL, "!=", self, other)

    __hash__ = None  # type: ignore[assignment]

    def __and__(self, other: Any) -> "Expression":
        if self.node.kind is Kind.INT and isinstance(other, int) and not isinstance(other, bool):
            return Expression(node(Op.BITS, (self.node, as_node(other, Kind.INT)), kind=Kind.INT))
        return Expression(node(Op.AND, (truth(self, "&"), truth(other, "&")), kind=Kind.BOOL))

    __rand__ = __and__

    def __mod__(self, other: Any) -> "Expression":
        if self.node.kind is not Kind.INT or isinstance(other, bool) or not isinstance(other, int) or other < 1:
            fail("a remainder needs a count and a divisor of at least 1, such as orbit % 30")
        return Expression(node(Op.REMAINDER, (self.node, as_node(other, Kind.INT)), kind=Kind.INT))

    def __or__(self, other: Any) -> "Expression":
        return Expression(node(Op.OR, (truth(self, "|"), truth(other, "|")), kind=Kind.BOOL))

    __ror__ = __or__

    def __invert__(self) -> "Expression":
        return Expression(node(Op.NOT, (truth(self, "~"),), kind=Kind.BOOL))

    def __bool__(self) -> NoReturn:
        fail(
            "a selection cannot branch on a value that is known in each event only: write & | ~ for and, or, not, "
            "(a < x) & (x < b) for a < x < b, where(...) for if, minimum and maximum for min and max"
        )

    def __float__(self) -> NoReturn:
        fail(_OTHER_FUNCTIONS)

    __int__ = __index__ = __len__ = __iter__ = __float__


def as_node(value: Any, kind: Kind | None = None) -> Node:
    """An operand as a node; a plain integer becomes `kind`, by default a number."""
    if isinstance(value, Expression):
        return value.node
    if isinstance(value, Quantity):
        return constant(value.value, value.unit)
    if isinstance(value, bool | np.bool_):
        return constant(bool(value), kind=Kind.BOOL)
    if kind is Kind.INT and isinstance(value, int | np.integer):
        if not 0 <= value < 2**32:
            fail(f"a count from 0 to 2^32 - 1 is expected, not {value}")
        return constant(int(value), kind=Kind.INT)
    if isinstance(value, int | float | np.integer | np.floating):
        return constant(float(value))
    fail(f"a line cannot compute with {value!r}")


def number(value: Any, what: str) -> Node:
    """An operand as a floating-point number."""
    operand = as_node(value)
    if operand.kind is Kind.BOOL:
        fail(f"{what} takes numbers, not true or false")
    if operand.kind is Kind.INT:
        return node(Op.TO_FLOAT, (operand,), kind=Kind.FLOAT)
    return operand


def truth(value: Any, what: str) -> Node:
    """An operand that is true or false."""
    operand = as_node(value)
    if operand.kind is not Kind.BOOL:
        fail(f"{what} takes a condition, such as a comparison in parentheses, not {operand.kind.value}")
    return operand


def same_unit(what: str, *values: Any) -> tuple[Node, ...]:
    """Operands as numbers of the same unit; a plain 0 fits any unit."""
    operands = [number(value, what) for value in values]
    units = {operand.unit for operand in operands if not is_zero(operand)}
    if len(units) > 1:
        fail(f"{what} with {' and '.join(sorted(map(str, units)))}: " + _advice(units))
    return tuple(operands)


def is_zero(operand: Node) -> bool:
    """True for the constant 0 without unit, which may be compared with any unit."""
    return (
        operand.op is Op.CONST
        and operand.unit == NO_UNIT
        and operand.kind is Kind.FLOAT
        and float.fromhex(operand.payload) == 0.0
    )


def _advice(units: set[Unit]) -> str:
    if NO_UNIT not in units:
        return "they cannot be compared or added"
    (other,) = [unit for unit in units if unit != NO_UNIT][:1]
    return f"give the number a unit, such as 1.5 * {other if ' ' not in str(other) and '^' not in str(other) else 'mm'}"


def common_unit(operands: tuple[Node, ...]) -> Unit:
    """The unit of operands that `same_unit` accepted."""
    return next((operand.unit for operand in operands if operand.unit != NO_UNIT), NO_UNIT)


def _sum(op: Op, left: Any, right: Any) -> Expression:
    operands = same_unit("+" if op is Op.ADD else "-", left, right)
    return Expression(node(op, operands, kind=Kind.FLOAT, unit=common_unit(operands)))


def _product(op: Op, left: Any, right: Any) -> Expression:
    a, b = number(left, "*" if op is Op.MUL else "/"), number(right, "*" if op is Op.MUL else "/")
    return Expression(node(op, (a, b), kind=Kind.FLOAT, unit=a.unit * b.unit if op is Op.MUL else a.unit / b.unit))


def _comparison(op: Op, sign: str, left: Any, right: Any) -> Expression:
    for one, other in ((left, right), (right, left)):
        if isinstance(one, Expression) and one.node.kind is Kind.INT and _is_count(other):
            return Expression(node(op, (as_node(left, Kind.INT), as_node(right, Kind.INT)), kind=Kind.BOOL))
    return Expression(node(op, same_unit(sign, left, right), kind=Kind.BOOL))


def _is_count(value: Any) -> bool:
    if isinstance(value, Expression):
        return value.node.kind is Kind.INT
    return isinstance(value, int | np.integer) and not isinstance(value, bool) and 0 <= int(value) < 2**32


def square_root(value: Any) -> Expression:
    """The square root; NaN of a negative number."""
    operand = number(value, "sqrt")
    return Expression(node(Op.SQRT, (operand,), kind=Kind.FLOAT, unit=operand.unit.to_the(Fraction(1, 2))))


def function_of_plain_number(op: Op, name: str, value: Any) -> Expression:
    """A function of a number without unit."""
    operand = number(value, name)
    if operand.unit != NO_UNIT:
        fail(f"{name} of a value in {operand.unit}: divide it by a unit first, such as {name}(x / GeV)")
    return Expression(node(op, (operand,), kind=Kind.FLOAT))


def angle_of(y: Any, x: Any) -> Expression:
    """atan2."""
    return Expression(node(Op.ATAN2, same_unit("atan2", y, x), kind=Kind.FLOAT, unit=ANGLE))


def smaller_or_larger(op: Op, name: str, left: Any, right: Any) -> Expression:
    """The smaller or larger of two numbers; NaN if one is NaN."""
    operands = same_unit(name, left, right)
    return Expression(node(op, operands, kind=Kind.FLOAT, unit=common_unit(operands)))


def choice(condition: Any, if_true: Any, if_false: Any) -> Expression:
    """One of two values; NaN if the condition is unknown."""
    chosen = truth(condition, "where")
    a, b = as_node(if_true), as_node(if_false)
    if a.kind is Kind.BOOL and b.kind is Kind.BOOL:
        decides = Expression(chosen)
        return (decides & Expression(a)) | (~decides & Expression(b))
    if a.kind is Kind.INT and b.kind is Kind.INT and not chosen.may_be_unknown:
        return Expression(node(Op.WHERE, (chosen, a, b), kind=Kind.INT))
    operands = same_unit("where", if_true, if_false)
    return Expression(node(Op.WHERE, (chosen, *operands), kind=Kind.FLOAT, unit=common_unit(operands)))


def output_of(table: ModelTable, inputs: tuple[Node, ...]) -> Expression:
    """The number that a model gives for its features."""
    op = Op.TREES if isinstance(table, Ensemble) else Op.NETWORK
    return Expression(node(op, inputs, kind=Kind.FLOAT, payload=table))


def not_a_number(unit: Unit) -> Node:
    """The value of a missing field."""
    return node(Op.CONST, kind=Kind.FLOAT, unit=unit, payload="nan")
