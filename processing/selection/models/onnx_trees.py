"""Decision trees of ONNX files: the nodes TreeEnsembleClassifier and TreeEnsembleRegressor of ai.onnx.ml, as skl2onnx
and onnxmltools write them.

Their attributes are lists with an entry for each node of all trees, and for each weight of a leaf
(https://onnx.ai/onnx/operators/onnx_aionnxml_TreeEnsembleClassifier.html). What that page leaves open is done as in
onnxruntime.
"""

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from hltnode.processing.selection.errors import ModelError, shown
from hltnode.processing.selection.models.ensemble import MAX_WORDS, BinaryTree, Ensemble, Split, below, nearest
from hltnode.processing.selection.models.learned import feature_number, finite
from hltnode.processing.selection.models.networks.protobuf import Message

CLASSIFIER, REGRESSOR = "TreeEnsembleClassifier", "TreeEnsembleRegressor"
_LEAF = "LEAF"

_Place = tuple[int, int]
"""Number of a tree, and of its node."""


@dataclass(frozen=True, slots=True)
class _Branch:
    """A comparison. threshold: of a split with the same effect. true_is_left: where its true numbers go."""

    threshold: Callable[[float], float]
    true_is_left: bool


_BRANCHES = {
    "BRANCH_LEQ": _Branch(nearest, true_is_left=True),
    "BRANCH_LT": _Branch(lambda threshold: below(nearest(threshold)), true_is_left=True),
    "BRANCH_GTE": _Branch(lambda threshold: below(nearest(threshold)), true_is_left=False),
    "BRANCH_GT": _Branch(nearest, true_is_left=False),
}


def classifier(attributes: Mapping[str, Message], n_features: int | None) -> tuple[Ensemble, float | None]:
    """The trees of two classes, and the slope of the logistic function of their sum, None without one: together the
    probability of the second class. `n_features`: None if the file leaves it open. Raises ModelError."""
    labels = max(
        len(_integers(attributes, "classlabels_int64s")),
        len(_texts(attributes, "classlabels_strings")),
    )
    classes, weights = _integers(attributes, "class_ids"), _floats(attributes, "class_weights")
    bases = _floats(attributes, "base_values")
    transform = _text(attributes, "post_transform", "NONE")
    if labels != 2 or not set(classes) <= {0, 1}:
        raise ModelError(f"{labels} classes: two classes, or a number as response, are expected")
    if transform not in ("NONE", "LOGISTIC"):
        raise ModelError(f"post_transform {shown(transform)}: NONE or LOGISTIC are expected")
    two_sums = len(set(classes)) == 2
    if two_sums and (transform != "NONE" or len(bases)):
        raise ModelError(
            "weights for both classes with a post_transform or base_values: one sum for the second class, or sums of "
            "probabilities, are expected"
        )
    if len(bases) > 1:
        raise ModelError(f"{len(bases)} base_values for one sum: at most one is expected")
    if not two_sums and transform == "LOGISTIC" and (weights >= 0.0).all():
        raise ModelError("post_transform LOGISTIC without a negative weight: libraries take it differently")
    of = 1 if two_sums else classes[0] if classes else 0
    if len(bases) and of == 1:
        raise ModelError("base_values and weights of the second class alone: onnxruntime leaves the base out")
    of_leaves = _of_leaves(attributes, "class", classes, weights, of=of)
    if two_sums and (others := _of_leaves(attributes, "class", classes, weights, of=0).keys() - of_leaves.keys()):
        tree, node = min(others)
        raise ModelError(f"tree {tree}: leaf {node} has a weight for the first class, none for the second")
    if len(bases) and len(of_leaves) != _texts(attributes, "nodes_modes").count(_LEAF):
        raise ModelError("base_values and a leaf without weight: onnxruntime leaves the base out there")
    base = float(bases[0]) if len(bases) else 0.0
    return _ensemble(attributes, n_features, of_leaves, base), 1.0 if transform == "LOGISTIC" else None


def regressor(attributes: Mapping[str, Message], n_features: int | None) -> Ensemble:
    """The trees of one number; otherwise as `classifier`."""
    targets, weights = _integers(attributes, "target_ids"), _floats(attributes, "target_weights")
    bases = _floats(attributes, "base_values")
    n_targets = attributes["n_targets"].integer(3) if "n_targets" in attributes else 1
    if n_targets != 1 or set(targets) - {0} or len(bases) > 1:
        raise ModelError(f"{n_targets} targets: one number as response is expected")
    transform = _text(attributes, "post_transform", "NONE")
    if transform != "NONE":
        raise ModelError(f"post_transform {shown(transform)} of a regression: NONE is expected")
    function = _text(attributes, "aggregate_function", "SUM")
    if function not in ("SUM", "AVERAGE"):
        raise ModelError(f"aggregate_function {shown(function)}: SUM or AVERAGE are expected")
    if function == "AVERAGE":
        weights = weights / max(len(set(_integers(attributes, "nodes_treeids"))), 1)
    of_leaves = _of_leaves(attributes, "target", targets, weights, of=0)
    return _ensemble(attributes, n_features, of_leaves, float(bases[0]) if len(bases) else 0.0)


def _integers(attributes: Mapping[str, Message], name: str) -> list[int]:
    return attributes[name].integers(8) if name in attributes else []


def _floats(attributes: Mapping[str, Message], name: str) -> NDArray[np.float64]:
    """Numbers in single precision. Raises ModelError for others, and for what is not finite."""
    if f"{name}_as_tensor" in attributes:
        raise ModelError(f"{name}_as_tensor: numbers in single precision are expected, convert the model with them")
    return finite(attributes[name].floats(7) if name in attributes else (), name)


def _text(attributes: Mapping[str, Message], name: str, default: str) -> str:
    return attributes[name].text(4) if name in attributes else default


def _texts(attributes: Mapping[str, Message], name: str) -> list[str]:
    return attributes[name].texts(9) if name in attributes else []


def _check_length(found: Sequence[object] | NDArray[np.float64], n: int, name: str) -> None:
    if len(found) != n:
        raise ModelError(f"{name} has {len(found)} entries, expected {n}")


def _of_leaves(
    attributes: Mapping[str, Message], kind: str, ids: list[int], weights: NDArray[np.float64], *, of: int
) -> dict[_Place, float]:
    """The weights of leaves for one class or target."""
    trees, nodes = (_integers(attributes, f"{kind}_{name}") for name in ("treeids", "nodeids"))
    for name, found in (("treeids", trees), ("nodeids", nodes), ("weights", weights)):
        _check_length(found, len(ids), f"{kind}_{name}")
    found_weights: dict[_Place, float] = {}
    for tree, node, number, weight in zip(trees, nodes, ids, weights.tolist(), strict=True):
        if number != of:
            continue
        if (tree, node) in found_weights:
            raise ModelError(f"tree {tree}: leaf {node} has two weights")
        found_weights[tree, node] = weight
    return found_weights


def _ensemble(
    attributes: Mapping[str, Message], n_features: int | None, of_leaves: dict[_Place, float], base: float
) -> Ensemble:
    trees = _integers(attributes, "nodes_treeids")
    n = len(trees)
    if n > MAX_WORDS // 2:
        raise ModelError(f"{n} nodes, at most {MAX_WORDS // 2} are allowed")
    columns = {
        name: _integers(attributes, f"nodes_{name}")
        for name in ("nodeids", "featureids", "truenodeids", "falsenodeids")
    }
    modes = _texts(attributes, "nodes_modes")
    values = _floats(attributes, "nodes_values")
    nan_is_true = _integers(attributes, "nodes_missing_value_tracks_true") or [0] * n
    for name, column in columns.items():
        _check_length(column, n, f"nodes_{name}")
    _check_length(modes, n, "nodes_modes")
    _check_length(values, n, "nodes_values")
    _check_length(nan_is_true, n, "nodes_missing_value_tracks_true")
    rows: dict[int, dict[int, int]] = {}
    for row, (tree, node) in enumerate(zip(trees, columns["nodeids"], strict=True)):
        # onnxruntime and the reference of ONNX take the first node of a tree, and of each part of one, as a root.
        if tree in rows and trees[row - 1] != tree:
            raise ModelError(f"tree {tree}: its nodes are not one after another")
        if tree < 0:
            raise ModelError(f"tree {tree}: a number from 0 on is expected")
        if node in rows.setdefault(tree, {}):
            raise ModelError(f"tree {tree} has two nodes {node}")
        rows[tree][node] = row
    is_split = [mode != _LEAF for mode in modes]
    for tree, node in of_leaves:
        if node not in rows.get(tree, {}) or is_split[rows[tree][node]]:
            raise ModelError(f"tree {tree}: node {node} has a weight and is no leaf")
    if n_features is None:
        n_features = 1 + max(
            (feature for feature, split in zip(columns["featureids"], is_split, strict=True) if split), default=0
        )

    def split_of(row: int) -> tuple[Split, int, int]:
        """A comparison, and the numbers of its left and right node."""
        branch = _BRANCHES.get(modes[row])
        if branch is None:
            raise ModelError(f"tree {trees[row]} splits by {shown(modes[row])}: {', '.join(_BRANCHES)} are expected")
        children = columns["truenodeids"][row], columns["falsenodeids"][row]
        left, right = children if branch.true_is_left else children[::-1]
        feature = feature_number(columns["featureids"][row], n_features)
        nan_right = bool(nan_is_true[row]) != branch.true_is_left
        return Split(feature, branch.threshold(float(values[row])), nan_right), left, right

    return Ensemble.of_trees(
        [_tree(tree, its_rows, is_split, split_of, of_leaves) for tree, its_rows in rows.items()], n_features, base
    )


def _tree(
    tree: int,
    rows: Mapping[int, int],
    is_split: Sequence[bool],
    split_of: Callable[[int], tuple[Split, int, int]],
    of_leaves: Mapping[_Place, float],
) -> BinaryTree:
    """A tree with its root first. rows: of its nodes in the lists, by their numbers."""
    splits = {node: split_of(row) for node, row in rows.items() if is_split[row]}
    below_others = {child for _, *children in splits.values() for child in children}
    roots = [node for node in rows if node not in below_others]
    if len(roots) != 1 or not below_others <= rows.keys():
        raise ModelError(f"tree {tree} has {len(roots)} roots, or a child that is no node of it")
    order = [roots[0]]
    places = {roots[0]: 0}
    for node in order:  # grows
        for child in splits[node][1:] if node in splits else ():
            if child in places:
                raise ModelError(f"tree {tree}: node {child} has two parents")
            places[child] = len(order)
            order.append(child)
    if len(order) != len(rows):
        raise ModelError(f"tree {tree}: {len(rows) - len(order)} nodes are not reached from its root {roots[0]}")
    if (first := next(iter(rows))) != roots[0]:
        raise ModelError(f"tree {tree} begins with node {first}: its root {roots[0]} is expected first")
    nodes = [splits[node][0] if node in splits else of_leaves.get((tree, node), 0.0) for node in order]
    children = [(places[splits[node][1]], places[splits[node][2]]) if node in splits else (0, 0) for node in order]
    return BinaryTree(nodes, children)
