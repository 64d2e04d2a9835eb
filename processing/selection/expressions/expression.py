"""Expressions of selection lines, built by Python operators on the fields of a candidate, with types and units.

A selection is ordinary Python on stand-ins for a candidate. Its operations are recorded as a tree of single-precision
operations (`Node`). kernel_code writes a kernel from it, and evaluation computes it with NumPy, with bit-identical
results. Nodes of equal content are one object, so an expression that several lines share is computed once.

Truth has three values. A comparison with a NaN is unknown: neither true nor false; `&`, `|` and `~` keep it unknown
unless the other operand decides (S. C. Kleene, Introduction to Metamathematics, 1952, section 64). An unknown selection
is false, and counted.
"""

from dataclasses import dataclass, field
from fractions import Fraction
from typing import Any, NoReturn

import numpy as np

from hltnode.processing.selection.expressions.nodes import Kind, Node, Op, constant, node
from hltnode.processing.selection.expressions.source_position import OTHER_FUNCTIONS, fail
from hltnode.processing.selection.expressions.units import ANGLE, NO_UNIT, Quantity, Unit
from hltnode.processing.selection.models.ensemble import Ensemble
from hltnode.processing.selection.models.table import ModelTable


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
        fail(OTHER_FUNCTIONS)

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
    if not isinstance(value, int | float | np.integer | np.floating):
        fail(f"a line cannot compute with {value!r}")
    return constant(float(value))


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
