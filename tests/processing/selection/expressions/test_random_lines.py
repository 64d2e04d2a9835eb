"""Random expressions on random numbers, NaN and infinities included, give the same result with every evaluator."""

from __future__ import annotations

from functools import partial
from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from numpy.typing import NDArray

from hltnode.processing.framework.collections import F32
from hltnode.processing.selection.expressions import float_functions
from hltnode.processing.selection.expressions.functions import atan2, exp, log, maximum, minimum, sqrt, where
from hltnode.processing.selection.expressions.units import MeV, mm
from hltnode.processing.selection.lines.inputs import all_of, any_of, count_of
from hltnode.processing.selection.lines.line import Line
from tests.processing.selection import toy_detector as toy
from tests.processing.selection.line_evaluators import Case, assert_all_decide_alike, by_blocks, by_compiler, by_ptx

LINES_PER_CASE = 12

CONSTANTS = st.floats(width=32, allow_nan=False, allow_infinity=False)
LEAVES = st.one_of(
    st.sampled_from(("a", "b", "x", "pt", "hits", "z")).map(lambda name: ("field", name)),
    CONSTANTS.map(lambda value: ("constant", value)),
)


def numbers(inner: st.SearchStrategy[Any]) -> st.SearchStrategy[Any]:
    one = st.tuples(st.sampled_from(("neg", "abs", "sqrt", "log", "exp")), inner)
    two = st.tuples(st.sampled_from(("+", "-", "*", "/", "min", "max", "atan2")), inner, inner)
    chosen = st.tuples(st.just("where"), comparisons(inner), inner, inner)
    return st.one_of(one, two, chosen)


def comparisons(inner: st.SearchStrategy[Any]) -> st.SearchStrategy[Any]:
    return st.tuples(st.sampled_from(("<", "<=", ">", ">=", "==", "!=")), inner, inner)


NUMBERS = st.recursive(LEAVES, numbers, max_leaves=12)


def truths(inner: st.SearchStrategy[Any]) -> st.SearchStrategy[Any]:
    over = st.tuples(st.sampled_from(("any", "all", "count")), comparisons(NUMBERS))
    return st.one_of(st.tuples(st.just("~"), inner), st.tuples(st.sampled_from(("&", "|")), inner, inner), over)


TRUTHS = st.recursive(comparisons(NUMBERS), truths, max_leaves=6)

FUNCTIONS: dict[str, Any] = {
    "neg": lambda a: -a,
    "abs": abs,
    "sqrt": lambda a: sqrt(a),
    "log": log,
    "exp": exp,
    "+": lambda a, b: a + b,
    "-": lambda a, b: a - b,
    "*": lambda a, b: a * b,
    "/": lambda a, b: a / b,
    "min": minimum,
    "max": maximum,
    "atan2": lambda a, b: atan2(a, b) / atan2(1.0, 1.0),
    "where": where,
    "<": lambda a, b: a < b,
    "<=": lambda a, b: a <= b,
    ">": lambda a, b: a > b,
    ">=": lambda a, b: a >= b,
    "==": lambda a, b: a == b,
    "!=": lambda a, b: a != b,
    "~": lambda a: ~a,
    "&": lambda a, b: a & b,
    "|": lambda a, b: a | b,
}


def built(recipe: Any, t: Any, v: Any) -> Any:
    """The expression of a recipe on a track and, inside of counts, a vertex."""
    what, *parts = recipe
    if what == "field":
        plain = {"x": lambda: t.x / mm, "pt": lambda: t.pt / MeV, "z": lambda: (v or t.vertex).z / mm}
        return plain[parts[0]]() if parts[0] in plain else getattr(t, parts[0])
    if what == "constant":
        # A number without a field does not have the operators of expressions: derive it from a field.
        return t.hits * 0.0 + parts[0]
    if what in ("any", "all", "count"):
        found = {"any": any_of, "all": all_of, "count": count_of}[what](
            toy.vertices, lambda vertex: built(parts[0], t, vertex)
        )
        return found >= 2 if what == "count" else found
    return FUNCTIONS[what](*(built(part, t, v) for part in parts))


@pytest.mark.expensive("compiles the kernel of each random set of lines, for CPU and GPU")
@pytest.mark.timeout(600)
@settings(max_examples=10, deadline=None)
@given(recipes=st.lists(TRUTHS, min_size=1, max_size=LINES_PER_CASE), seed=st.integers(0, 1000), ptx=st.booleans())
def test_random_lines_decide_alike(recipes: list[Any], seed: int, ptx: bool) -> None:
    lines = tuple(
        Line(f"L{i}", (toy.tracks, toy.muons)[i % 2], partial(built, recipe, v=None))
        for i, recipe in enumerate(recipes)
    )
    columns = toy.random_events(6, seed, special=0.2)
    case = Case(lines, toy.EVENT_WORDS, columns, toy.limits_of(columns, len(lines)))
    assert_all_decide_alike(case, [by_compiler, by_ptx(32) if ptx else by_blocks(32)])


def samples() -> NDArray[np.float32]:
    rng = np.random.default_rng(2)
    bits = rng.integers(0, 2**32, 200_000, dtype=np.uint64).astype(np.uint32).view(F32)
    return np.concatenate([bits, rng.uniform(-100, 100, 100_000).astype(F32), toy.SPECIAL])


def test_the_logarithm_is_one_for_every_number() -> None:
    x = samples()
    with np.errstate(all="ignore"):
        found, expected = float_functions.logarithm(x), np.log(x.astype(np.float64))
    finite = np.isfinite(expected)
    assert (np.isnan(found) == np.isnan(expected)).all()
    assert (found[~finite & ~np.isnan(expected)] == expected[~finite & ~np.isnan(expected)]).all()
    assert (np.abs(found[finite] - expected[finite]) <= 1e-7 + 2e-7 * np.abs(expected[finite])).all()


def test_the_exponential_is_one_for_every_number() -> None:
    x = samples()
    with np.errstate(all="ignore"):
        found, expected = float_functions.exponential(x), np.exp(x.astype(np.float64))
    inside = (x > -87) & (x < 88)
    assert (np.abs(found[inside] / expected[inside] - 1) < 1e-6).all()
    assert (found[x <= -87] == 0).all()
    assert np.isinf(found[x >= 88]).all()
    assert np.isnan(found[np.isnan(x)]).all()


def test_extremes_keep_a_nan() -> None:
    nan, one = np.array([np.nan, 1.0, np.nan], F32), np.array([1.0, np.nan, np.nan], F32)
    assert np.isnan(float_functions.minimum(nan, one)).all()
    assert np.isnan(float_functions.maximum(nan, one)).all()
