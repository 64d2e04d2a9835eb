"""Functions of lines on values of events. `abs` is Python's."""

from typing import Any

from hltnode.processing.selection.expressions.expression import (
    Expression,
    angle_of,
    choice,
    function_of_plain_number,
    smaller_or_larger,
    square_root,
)
from hltnode.processing.selection.expressions.nodes import Op


def log(value: Any) -> Expression:
    """The natural logarithm of a number without unit: -inf for 0, NaN for a negative number."""
    return function_of_plain_number(Op.LOG, "log", value)


def exp(value: Any) -> Expression:
    """e to the power of a number without unit."""
    return function_of_plain_number(Op.EXP, "exp", value)


def sqrt(value: Any) -> Expression:
    """The square root; its unit is the square root of the unit."""
    return square_root(value)


def atan2(y: Any, x: Any) -> Expression:
    """The angle of the direction (x, y) in rad, -π to π."""
    return angle_of(y, x)


def minimum(first: Any, second: Any, *others: Any) -> Expression:
    """The smallest of several numbers; NaN if one is NaN."""
    result = smaller_or_larger(Op.MIN, "minimum", first, second)
    for other in others:
        result = smaller_or_larger(Op.MIN, "minimum", result, other)
    return result


def maximum(first: Any, second: Any, *others: Any) -> Expression:
    """The largest of several numbers; NaN if one is NaN."""
    result = smaller_or_larger(Op.MAX, "maximum", first, second)
    for other in others:
        result = smaller_or_larger(Op.MAX, "maximum", result, other)
    return result


def where(condition: Any, if_true: Any, if_false: Any) -> Expression:
    """`if_true` if the condition is true, else `if_false`; NaN if a NaN makes the condition unknown."""
    return choice(condition, if_true, if_false)
