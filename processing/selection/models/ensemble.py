"""Decision trees as one table of 32-bit words: for kernels (trees.cuh), for NumPy and for TCK documents.

The words: number of trees, number of features, base (f32); then the trees one after another.

    oblivious tree    depth | 1 << 8; for each of its splits a threshold (f32) and feature | nan_right << 9; then the
                      2^depth leaves (f32). Bit k of the number of the leaf is set if split k goes right.
    binary tree       depth | nodes << 9; for each node a threshold (f32) and feature | nan_right << 9 | left << 10. The
                      right child follows the left one. A leaf has its value as threshold, the feature behind the last
                      one, and itself as left child, so that `depth` steps from node 0 end at a leaf.

A number goes right if it is above the threshold. NaN goes right if `nan_right`. Sums are compensated (W. Kahan, Further
remarks on reducing truncation errors, CACM 8 (1965) 40), so that hundreds of trees keep single precision.
"""

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from hltnode.processing.framework.collections import F32, U32
from hltnode.processing.selection.errors import ModelError
from hltnode.processing.selection.models.table import ModelTable, Words, bits, expect, words_of_text

MAX_TREES = 5_000
MAX_FEATURES = 256
MAX_DEPTH = 64
"""Of a binary tree."""
MAX_OBLIVIOUS_DEPTH = 16
"""CatBoost's own limit."""
MAX_WORDS = 1 << 20
"""4 MiB, so that the table of a model stays in the cache of a processor or GPU."""
MAX_SUM = 1e38
"""Of the base and the largest leaf of each tree, in absolute values: no sum overflows to infinity or NaN."""

Floats = NDArray[np.float32]

_HEADER = 3
_FEATURE = (1 << 9) - 1
_NAN_RIGHT = 9
_LEFT = 10
_OBLIVIOUS = 1 << 8
_NODES = 9


@dataclass(frozen=True, slots=True)
class Split:
    """One comparison: a number goes right if it is above the threshold; NaN if `nan_right`."""

    feature: int
    threshold: float
    nan_right: bool


@dataclass(frozen=True, slots=True)
class ObliviousTree:
    """A tree with the same split in all nodes of a level. leaves: 2^splits; split k gives bit k of the number."""

    splits: Sequence[Split]
    leaves: Sequence[float]


@dataclass(frozen=True, slots=True)
class BinaryTree:
    """Any binary tree: node 0 is its root. splits: of each node, or the value of a leaf. children: left and right, of
    nodes with a split."""

    nodes: Sequence[Split | float]
    children: Sequence[tuple[int, int]]


Tree = ObliviousTree | BinaryTree


def nearest(threshold: float) -> float:
    """The nearest single-precision number. Raises ModelError if there is none."""
    return float(np.uint32(bits(threshold, "a threshold")).view(F32))


def not_above(threshold: float) -> float:
    """The largest single-precision number that is not above a threshold: both split such numbers alike."""
    with np.errstate(over="ignore"):
        rounded = np.float32(threshold)
    if np.isposinf(rounded):
        return float(np.finfo(np.float32).max)
    return float(rounded) if float(rounded) <= threshold else below(float(rounded))


def below(threshold: float) -> float:
    """The largest single-precision number below a single-precision threshold."""
    with np.errstate(over="ignore", under="ignore"):
        return float(np.nextafter(np.float32(threshold), np.float32(-np.inf)))


class Ensemble(ModelTable):
    """A table of trees, checked. Equal tables are equal.

    Raises ModelError for a table that is not of this form.
    """

    prefix = "trees"
    kind = "decision trees"

    def __init__(self, words: Words) -> None:
        super().__init__(words)
        self._starts = _checked(words)

    @classmethod
    def of_trees(cls, trees: Sequence[Tree], n_features: int, base: float) -> "Ensemble":
        """The table of some trees; the sum of an ensemble begins with `base`.

        Raises ModelError for more trees, features, levels or words than allowed, and for trees that contradict
        themselves.
        """
        expect(len(trees), 1, MAX_TREES, "trees")
        expect(n_features, 1, MAX_FEATURES, "features")
        words = [len(trees), n_features, bits(base, "the base")]
        for i, tree in enumerate(trees):
            try:
                words += _oblivious(tree) if isinstance(tree, ObliviousTree) else _binary(tree, n_features)
            except ModelError as error:
                raise ModelError(f"tree {i}: {error}") from error
            if len(words) > MAX_WORDS:
                raise ModelError(f"more than {MAX_WORDS} words up to tree {i}")
        return cls(np.array(words, U32))

    @classmethod
    def from_text(cls, text: str) -> "Ensemble":
        """The table of a text from `text`. Raises ModelError."""
        return cls(words_of_text(text, "trees"))

    @property
    def n_trees(self) -> int:
        """Number of trees."""
        return int(self.words[0])

    @property
    def cost(self) -> int:
        """A tree counts as one operation."""
        return self.n_trees

    def sums(self, inputs: Sequence[Floats]) -> Floats:
        """The sum of the leaves for each candidate, f32[n], of f32[n] for each feature: bit by bit that of kernels."""
        n = len(inputs[0])
        values = np.stack([*inputs, np.full(n, -np.inf, F32)])
        numbers = self.words.view(F32)
        total = np.full(n, numbers[2], F32)
        lost = np.zeros(n, F32)
        candidates = np.arange(n)
        with np.errstate(all="ignore"):
            for start in self._starts:
                head = int(self.words[start])
                leaf = (
                    self._oblivious_leaf(start, head, values)
                    if head & _OBLIVIOUS
                    else self._binary_leaf(start, head, values, candidates)
                )
                term = numbers[leaf] - lost
                sums = total + term
                lost = (sums - total) - term
                total = sums
        return total

    def _oblivious_leaf(self, start: int, head: int, values: NDArray[np.float32]) -> NDArray[np.int64]:
        depth = head & 0xFF
        place = np.zeros(values.shape[1], np.int64)
        for k in range(depth):
            threshold, word = self.words.view(F32)[start + 1 + 2 * k], int(self.words[start + 2 + 2 * k])
            x = values[word & _FEATURE]
            right = ~(x <= threshold) if word >> _NAN_RIGHT & 1 else x > threshold
            place |= right.astype(np.int64) << k
        return place + start + 1 + 2 * depth

    def _binary_leaf(
        self, start: int, head: int, values: NDArray[np.float32], candidates: NDArray[np.int64]
    ) -> NDArray[np.int64]:
        place = np.zeros(values.shape[1], np.int64)
        for _ in range(head & 0xFF):
            at = start + 1 + 2 * place
            threshold, word = self.words.view(F32)[at], self.words[at + 1]
            x = values[word & np.uint32(_FEATURE), candidates]
            nan_right = (word >> np.uint32(_NAN_RIGHT) & np.uint32(1)).astype(np.bool_)
            right = np.where(nan_right, ~(x <= threshold), x > threshold)
            place = (word >> np.uint32(_LEFT)).astype(np.int64) + right
        found: NDArray[np.int64] = start + 1 + 2 * place
        return found


# --- making a table ---------------------------------------------------------------------------------------------------


def _split_words(split: Split, left: int = 0) -> list[int]:
    # -inf is possible: the largest float below the lowest one.
    threshold = np.float32(split.threshold)
    return [int(threshold.view(U32)), split.feature | int(split.nan_right) << _NAN_RIGHT | left << _LEFT]


def _oblivious(tree: ObliviousTree) -> list[int]:
    depth = len(tree.splits)
    expect(depth, 0, MAX_OBLIVIOUS_DEPTH, "levels")
    if len(tree.leaves) != 1 << depth:
        raise ModelError(f"{len(tree.leaves)} leaves for {depth} splits, expected {1 << depth}")
    words = [depth | _OBLIVIOUS]
    for split in tree.splits:
        words += _split_words(split)
    return words + [bits(leaf, "a leaf") for leaf in tree.leaves]


def _binary(tree: BinaryTree, n_features: int) -> list[int]:
    """The words of a tree, level by level, with the children of a node side by side."""
    if len(tree.children) != len(tree.nodes):
        raise ModelError(f"{len(tree.children)} pairs of children for {len(tree.nodes)} nodes")
    order, levels = [0], [0]
    seen = {0}
    words = []
    for place, level in enumerate(levels):  # both lists grow
        at = tree.nodes[order[place]]
        if not isinstance(at, Split):
            words += [bits(at, "a leaf"), n_features | place << _LEFT]
            continue
        expect(level + 1, 1, MAX_DEPTH, "levels")
        words += _split_words(at, left=len(order))
        for child in tree.children[order[place]]:
            if not 0 <= child < len(tree.nodes) or child in seen:
                raise ModelError(f"node {order[place]} has the child {child}: not a tree")
            seen.add(child)
            order.append(child)
            levels.append(level + 1)
        if len(words) > MAX_WORDS:
            raise ModelError(f"more than {MAX_WORDS // 2} nodes")
    return [max(levels) | len(order) << _NODES, *words]


# --- checking a table -------------------------------------------------------------------------------------------------


def _checked(words: Words) -> list[int]:
    """The place of each tree. Raises ModelError if a kernel could leave the table or sum what is no number."""
    if not _HEADER < len(words) <= MAX_WORDS:
        raise ModelError(f"a table of {len(words)} words, expected {_HEADER + 1} to {MAX_WORDS}")
    n_trees, n_features = int(words[0]), int(words[1])
    expect(n_trees, 1, MAX_TREES, "trees")
    expect(n_features, 1, MAX_FEATURES, "features")
    if not np.isfinite(words.view(F32)[2]):
        raise ModelError("the base is not finite")
    starts, at, largest = [], _HEADER, abs(float(words.view(F32)[2]))
    for tree in range(n_trees):
        if at >= len(words):
            raise ModelError(f"the table ends before tree {tree}")
        starts.append(at)
        head = int(words[at])
        check = _checked_oblivious if head & _OBLIVIOUS else _checked_binary
        try:
            n, leaves = check(words[at + 1 :], head, n_features)
        except ModelError as error:
            raise ModelError(f"tree {tree}: {error}") from error
        at += 1 + n
        largest += float(np.abs(leaves).max())
    if at != len(words):
        raise ModelError(f"{len(words)} words, the trees end at {at}")
    if largest > MAX_SUM:
        raise ModelError(f"the leaves add up to {largest:g}, at most {MAX_SUM:g} is allowed")
    return starts


def _checked_oblivious(words: Words, head: int, n_features: int) -> tuple[int, Floats]:
    """The number of words behind the head, and the leaves."""
    depth = head & 0xFF
    if head != depth | _OBLIVIOUS or depth > MAX_OBLIVIOUS_DEPTH:
        raise ModelError(f"unknown kind of tree 0x{head:08X}")
    n = 2 * depth + (1 << depth)
    if n > len(words):
        raise ModelError("the table ends in its leaves")
    splits = words[1 : 2 * depth : 2]
    if ((splits & _FEATURE) >= n_features).any() or (splits >> _LEFT).any():
        raise ModelError("a split has no feature")
    leaves = words[2 * depth : n].view(F32)
    if np.isnan(words[: 2 * depth : 2].view(F32)).any() or not np.isfinite(leaves).all():
        raise ModelError("a threshold or leaf is not a number")
    return n, leaves


def _checked_binary(words: Words, head: int, n_features: int) -> tuple[int, Floats]:
    """The number of words behind the head, and the leaves."""
    depth, n_nodes = head & 0xFF, head >> _NODES
    if depth > MAX_DEPTH or not n_nodes >= 1 or 2 * n_nodes > len(words):
        raise ModelError("the table ends in its nodes")
    numbers, packed = words[: 2 * n_nodes : 2].view(F32), words[1 : 2 * n_nodes : 2]
    feature, left = packed & _FEATURE, (packed >> _LEFT).astype(np.int64)
    place = np.arange(n_nodes)
    is_leaf = feature == n_features
    if (feature > n_features).any():
        raise ModelError("a split has no feature")
    if (left[is_leaf] != place[is_leaf]).any() or (packed[is_leaf] >> _NAN_RIGHT & 1).any():
        raise ModelError("a leaf is not its own child")
    inner = left[~is_leaf]
    # Each pair of children has one parent before it, so that the steps end at a leaf.
    if (inner <= place[~is_leaf]).any() or sorted(inner) != list(range(1, n_nodes, 2)) or n_nodes % 2 == 0:
        raise ModelError("the nodes are not a tree")
    if np.isnan(numbers).any() or not np.isfinite(numbers[is_leaf]).all():
        raise ModelError("a threshold or leaf is not a number")
    levels = np.zeros(n_nodes, np.int64)
    for node in place[~is_leaf]:
        levels[left[node] : left[node] + 2] = levels[node] + 1
    if levels.max() != depth:
        raise ModelError(f"{levels.max()} levels, its head says {depth}")
    return 2 * n_nodes, numbers[is_leaf]
