"""Tables of trees: the sums of a walk in plain Python, and refusal of tables that a kernel could not read."""

from __future__ import annotations

import math

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from hltnode.processing.selection.errors import ModelError
from hltnode.processing.selection.models import ensemble
from hltnode.processing.selection.models.ensemble import (
    MAX_DEPTH,
    MAX_FEATURES,
    MAX_OBLIVIOUS_DEPTH,
    MAX_TREES,
    BinaryTree,
    Ensemble,
    ObliviousTree,
    Split,
    Tree,
    below,
    not_above,
)

FLOATS = st.floats(width=32, allow_nan=False, allow_infinity=False, min_value=-8, max_value=8)
VALUES = st.sampled_from([math.nan, math.inf, -math.inf, 0.0, -0.0, 0.5, -1.25, 3.0])
SPLITS = st.builds(Split, st.integers(0, 2), st.one_of(FLOATS, st.sampled_from([0.0, 0.5, -math.inf])), st.booleans())


@st.composite
def oblivious_trees(draw: st.DrawFn) -> ObliviousTree:
    splits = draw(st.lists(SPLITS, max_size=4))
    n = 1 << len(splits)
    return ObliviousTree(splits, draw(st.lists(FLOATS, min_size=n, max_size=n)))


@st.composite
def binary_trees(draw: st.DrawFn) -> BinaryTree:
    """Any shape: each pair of new nodes becomes the children of a leaf, in any order."""
    nodes: list[Split | float] = [draw(FLOATS)]
    children = [(0, 0)]
    for _ in range(draw(st.integers(0, 6))):
        parent = draw(st.sampled_from([i for i, at in enumerate(nodes) if not isinstance(at, Split)]))
        first = len(nodes)
        nodes[parent] = draw(SPLITS)
        children[parent] = (first, first + 1) if draw(st.booleans()) else (first + 1, first)
        nodes += [draw(FLOATS), draw(FLOATS)]
        children += [(0, 0), (0, 0)]
    return BinaryTree(nodes, children)


def right(split: Split, values: list[float]) -> bool:
    x = float(np.float32(values[split.feature]))
    return split.nan_right if math.isnan(x) else x > float(np.float32(split.threshold))


def leaf_of(tree: Tree, values: list[float]) -> float:
    """The oracle: follow the splits."""
    if isinstance(tree, ObliviousTree):
        return tree.leaves[sum(right(split, values) << k for k, split in enumerate(tree.splits))]
    at = 0
    while isinstance(split := tree.nodes[at], Split):
        at = tree.children[at][right(split, values)]
    return split


def sums(trees: Ensemble, rows: list[list[float]]) -> list[float]:
    found: list[float] = trees.sums(list(np.array(rows, np.float32).T)).tolist()
    return found


@settings(max_examples=150)
@given(
    trees=st.lists(st.one_of(oblivious_trees(), binary_trees()), min_size=1, max_size=4),
    rows=st.lists(st.lists(VALUES, min_size=3, max_size=3), min_size=1, max_size=6),
    base=FLOATS,
)
def test_a_sum_is_that_of_the_leaves_at_the_end_of_the_splits(
    trees: list[Tree], rows: list[list[float]], base: float
) -> None:
    made = Ensemble.of_trees(trees, 3, base)
    expected = [base + math.fsum(leaf_of(tree, row) for tree in trees) for row in rows]
    assert sums(made, rows) == pytest.approx(expected, rel=1e-6, abs=1e-5)
    again = Ensemble.from_text(made.text)
    assert (again, again.digest) == (made, made.digest)
    assert sums(again, rows) == sums(made, rows)


def test_five_thousand_trees_keep_single_precision() -> None:
    rng = np.random.default_rng(3)
    leaves = rng.normal(0.0, 1.0, MAX_TREES).astype(np.float32)
    made = Ensemble.of_trees([ObliviousTree((), [float(leaf)]) for leaf in leaves], 1, 1000.0)
    exact = 1000.0 + math.fsum(float(leaf) for leaf in leaves)
    assert sums(made, [[0.0]])[0] == np.float32(exact)
    plain = np.float32(1000.0)
    for leaf in leaves:
        plain += leaf
    assert plain != np.float32(exact), "this sum needs no compensation"


@given(st.floats(allow_nan=False, allow_infinity=False), st.floats(width=32, allow_nan=False))
def test_a_threshold_in_double_precision_splits_single_precision_alike(threshold: float, x: float) -> None:
    assert (x > not_above(threshold)) == (x > threshold)


@given(st.floats(width=32, allow_nan=False, allow_infinity=False), st.floats(width=32, allow_nan=False))
def test_left_of_a_threshold_is_not_above_the_number_below_it(threshold: float, x: float) -> None:
    assert (x > below(threshold)) == (not x < threshold)


SPLIT = Split(0, 0.5, False)


def chain(depth: int) -> BinaryTree:
    """A tree with one leaf on each level."""
    nodes: list[Split | float] = []
    for _ in range(depth):
        nodes += [SPLIT, 1.0]
    children = [pair for i in range(depth) for pair in ((2 * i + 1, 2 * i + 2), (0, 0))]
    return BinaryTree([*nodes, 2.0], [*children, (0, 0)])


def test_the_deepest_trees_are_taken() -> None:
    assert sums(Ensemble.of_trees([chain(MAX_DEPTH)], 1, 0.0), [[0.0], [1.0]]) == [1.0, 2.0]
    deep = ObliviousTree([SPLIT] * MAX_OBLIVIOUS_DEPTH, list(range(1 << MAX_OBLIVIOUS_DEPTH)))
    assert sums(Ensemble.of_trees([deep], MAX_FEATURES, 0.0), [[1.0] * MAX_FEATURES]) == [65535.0]


@pytest.mark.parametrize(
    ("trees", "n_features", "message"),
    [
        ([], 1, "0 trees, expected 1 to 5000"),
        ([ObliviousTree((), [1.0])] * (MAX_TREES + 1), 1, "5001 trees, expected 1 to 5000"),
        ([ObliviousTree((), [1.0])], 0, "0 features, expected 1 to 256"),
        ([ObliviousTree((), [1.0])], MAX_FEATURES + 1, "257 features, expected 1 to 256"),
        ([ObliviousTree([SPLIT], [1.0])], 1, "tree 0: 1 leaves for 1 splits, expected 2"),
        ([ObliviousTree([SPLIT] * 17, [0.0] * (1 << 17))], 1, "tree 0: 17 levels, expected 0 to 16"),
        ([ObliviousTree((), [math.nan])], 1, "tree 0: a leaf is nan, expected a finite number"),
        ([ObliviousTree((), [1e39])], 1, r"tree 0: a leaf is 1e\+39, expected a finite number"),
        ([chain(MAX_DEPTH + 1)], 1, "tree 0: 65 levels, expected 1 to 64"),
        ([BinaryTree([SPLIT, 1.0], [(1, 1), (0, 0)])], 1, "tree 0: node 0 has the child 1: not a tree"),
        ([BinaryTree([SPLIT, 1.0], [(1, 2), (0, 0)])], 1, "tree 0: node 0 has the child 2: not a tree"),
        ([BinaryTree([SPLIT, 1.0, SPLIT], [(1, 2), (0, 0), (0, 1)])], 1, "node 2 has the child 0: not a tree"),
        ([BinaryTree([1.0], [])], 1, "0 pairs of children for 1 nodes"),
        ([BinaryTree([1.0, SPLIT], [(0, 0), (0, 0)]), ObliviousTree([Split(1, 0.0, False)], [1.0, 2.0])], 1, "feature"),
    ],
)
def test_trees_beyond_the_bounds_or_without_sense_are_refused(trees: list[Tree], n_features: int, message: str) -> None:
    with pytest.raises(ModelError, match=message):
        Ensemble.of_trees(trees, n_features, 0.0)


def test_a_table_beyond_its_bound_is_refused(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(ensemble, "MAX_WORDS", 40)
    with pytest.raises(ModelError, match="more than 40 words up to tree 8"):
        Ensemble.of_trees([ObliviousTree((), [1.0]), *[ObliviousTree([SPLIT], [1.0, 2.0])] * 13], 1, 0.0)
    with pytest.raises(ModelError, match="more than 20 nodes"):
        Ensemble.of_trees([chain(30)], 1, 0.0)


@pytest.mark.parametrize(
    "tree", [ObliviousTree([SPLIT], [2.0, -3e37]), BinaryTree([SPLIT, 1.0, -3e37], [(1, 2), (0, 0), (0, 0)])]
)
def test_leaves_that_add_up_to_no_number_are_refused(tree: Tree) -> None:
    assert sums(Ensemble.of_trees([tree] * 2, 1, -3.9e37), [[1.0]])[0] == pytest.approx(-9.9e37)
    with pytest.raises(ModelError, match=r"the leaves add up to 1\.01e\+38, at most 1e\+38 is allowed"):
        Ensemble.of_trees([tree] * 2, 1, 4.1e37)
    with pytest.raises(ModelError, match="the leaves add up to"):
        Ensemble.of_trees([tree] * 4, 1, 0.0)


TABLE = Ensemble.of_trees([ObliviousTree([SPLIT], [1.0, 2.0]), chain(2)], 2, 0.5)
"""Words: 0 trees, 1 features, 2 base; 3 head, 4-5 split, 6-7 leaves; 8 head, 9-18 five nodes."""


def changed(place: int, value: int | float) -> Ensemble:
    words = TABLE.words.copy()
    words[place] = value if isinstance(value, int) else np.float32(value).view(np.uint32)
    return Ensemble(words)


@pytest.mark.parametrize(
    ("place", "value", "message"),
    [
        (0, 0, "0 trees, expected"),
        (0, 3, "the table ends before tree 2"),
        (0, 1, "19 words, the trees end at 8"),
        (1, 0, "0 features"),
        (2, math.nan, "the base is not finite"),
        (3, 1 << 8 | 17, "tree 0: unknown kind of tree"),
        (3, 1 << 8 | 1 | 1 << 9, "tree 0: unknown kind of tree"),
        (3, 1 << 8 | 16, "tree 0: the table ends in its leaves"),
        (4, math.nan, "tree 0: a threshold or leaf is not a number"),
        (5, 2, "tree 0: a split has no feature"),
        (5, 1 << 10, "tree 0: a split has no feature"),
        (6, math.inf, "tree 0: a threshold or leaf is not a number"),
        (8, 2 | 6 << 9, "tree 1: the table ends in its nodes"),
        (8, 2, "tree 1: the table ends in its nodes"),
        (8, 3 | 5 << 9, "tree 1: 2 levels, its head says 3"),
        (8, 65 | 5 << 9, "tree 1: the table ends in its nodes"),
        (9, math.nan, "tree 1: a threshold or leaf is not a number"),
        (10, 3 | 1 << 10, "tree 1: a split has no feature"),
        (10, 0 | 3 << 10, "tree 1: the nodes are not a tree"),
        (10, 0, "tree 1: the nodes are not a tree"),
        (11, math.inf, "tree 1: a threshold or leaf is not a number"),
        (12, 2 | 2 << 10, "tree 1: a leaf is not its own child"),
        (12, 2 | 1 << 10 | 1 << 9, "tree 1: a leaf is not its own child"),
    ],
)
def test_a_changed_word_is_refused(place: int, value: int | float, message: str) -> None:
    with pytest.raises(ModelError, match=message):
        changed(place, value)


@settings(max_examples=300)
@given(place=st.integers(0, len(TABLE.words) - 1), value=st.integers(0, 2**32 - 1))
def test_no_changed_word_makes_a_table_that_leaves_its_bounds(place: int, value: int) -> None:
    try:
        made = changed(place, value)
    except ModelError:
        return
    rows = [[math.nan, 0.0], [math.inf, -math.inf], [0.5, 1.0]]
    assert np.isfinite(sums(made, [row[: made.n_features] for row in rows])).all()


@given(st.one_of(st.text(max_size=60), st.binary(max_size=60).map(lambda content: content.hex())))
def test_any_text_is_a_table_or_refused(text: str) -> None:
    with pytest.raises(ModelError):
        Ensemble.from_text(text)
