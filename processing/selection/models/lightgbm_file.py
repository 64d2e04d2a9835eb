"""Models that LightGBM saved as text (`Booster.save_model("NAME.txt")`) or as JSON (`Booster.dump_model()`)."""

from collections.abc import Mapping
from typing import Any

import numpy as np

from hltnode.processing.selection.errors import ModelError
from hltnode.processing.selection.models.ensemble import MAX_TREES, MAX_WORDS, BinaryTree, Ensemble, Split, not_above
from hltnode.processing.selection.models.learned import LearnedModel, feature_number, finite, integers, names

VERSIONS = ("v3", "v4")
_IDENTITY = (
    *("regression", "regression_l1", "huber", "fair", "quantile", "mape"),
    *("lambdarank", "rank_xendcg"),
)
_CATEGORICAL, _DEFAULT_LEFT = 1, 2
"""Bits of `decision_type`; the two bits above say what counts as missing."""
_MISSING = ("None", "Zero", "NaN")


def from_text(text: str) -> LearnedModel:
    """The trees of the text form. Raises ModelError."""
    head, *blocks = text.split("\nTree=")
    if "end of trees" not in text:
        raise ModelError("the file ends before its trees do")
    values = _values(head)
    try:
        trees = [_values(block) for block in blocks]
        return _model(
            values,
            "average_output" in head.split("\n"),
            values.get("feature_names", "").split(),
            [
                _tree_of_text(tree, i, int(values["max_feature_idx"]) + 1)
                for i, tree in enumerate(trees[: MAX_TREES + 1])
            ],
        )
    except KeyError as error:
        raise ModelError(f"damaged, or of another version of LightGBM: it has no {error}") from error
    except (IndexError, ValueError, TypeError) as error:
        if isinstance(error, ModelError):
            raise
        raise ModelError(f"damaged, or of another version of LightGBM: {error}") from error


def from_json(content: Mapping[str, Any]) -> LearnedModel:
    """The trees of the JSON object. Raises ModelError, and the errors of a damaged object (model_file.py)."""
    n_features = int(content["max_feature_idx"]) + 1
    trees = [_tree_of_json(tree, i, n_features) for i, tree in enumerate(content["tree_info"][: MAX_TREES + 1])]
    return _model(content, bool(content.get("average_output")), content["feature_names"], trees)


def _values(block: str) -> dict[str, str]:
    pairs = (line.partition("=") for line in block.split("\n"))
    return {key: value for key, sign, value in pairs if sign}


def _model(values: Mapping[str, Any], averages: bool, features: object, trees: list[BinaryTree]) -> LearnedModel:
    if values["version"] not in VERSIONS:
        raise ModelError(f"LightGBM file {values['version']}: {' and '.join(VERSIONS)} are read")
    if int(values["num_class"]) != 1 or int(values["num_tree_per_iteration"]) != 1:
        raise ModelError("several classes: a model with one response is expected")
    if averages:
        raise ModelError("a random forest, which averages its trees: boosted trees are expected")
    n_features = int(values["max_feature_idx"]) + 1
    table = Ensemble.of_trees(trees, n_features, 0.0)
    return LearnedModel(table, names(features, n_features), slope=_slope(values.get("objective", "regression")))


def _slope(objective: str) -> float | None:
    """The slope of the logistic function of the response; None for the sum."""
    name, *options = objective.split()
    if name == "cross_entropy":
        return 1.0
    if name == "binary":
        (slope,) = finite([option.removeprefix("sigmoid:") for option in options], "objective", 1)
        return float(slope)
    if name not in _IDENTITY or (options and name.startswith("regression")):
        raise ModelError(f"objective {objective!r}: expected binary, cross_entropy, {', '.join(_IDENTITY)}")
    return None


def _split(number: int, feature: int, threshold: float, default_left: bool, missing: str) -> Split:
    if missing == "Zero":
        raise ModelError(f"tree {number} takes 0 for a missing value: train with zero_as_missing=False")
    if missing not in _MISSING:
        raise ModelError(f"tree {number}: missing_type {missing!r}, expected one of {', '.join(_MISSING)}")
    # LightGBM goes left up to the threshold. Where no value was missing in the training, it takes 0 for NaN.
    nan_right = not default_left if missing == "NaN" else threshold < 0.0
    return Split(feature, not_above(threshold), bool(nan_right))


def _tree_of_text(tree: Mapping[str, str], number: int, n_features: int) -> BinaryTree:
    (n_leaves,) = integers([tree["num_leaves"]], f"tree {number}: num_leaves")
    if not 1 <= n_leaves <= MAX_WORDS:
        raise ModelError(f"tree {number}: {n_leaves} leaves, expected 1 to {MAX_WORDS}")
    if tree["num_cat"] != "0":
        raise ModelError(f"tree {number} splits by categories: numbers alone are expected")
    if tree.get("is_linear", "0") != "0":
        raise ModelError(f"tree {number} has linear functions in its leaves: train with linear_tree=False")
    leaves = finite(tree["leaf_value"].split(), f"tree {number}: leaf_value", int(n_leaves))
    if n_leaves == 1:
        return BinaryTree([float(leaves[0])], [(0, 0)])
    n = int(n_leaves) - 1
    feature = integers(tree["split_feature"].split(), f"tree {number}: split_feature", n)
    threshold = finite(tree["threshold"].split(), f"tree {number}: threshold", n)
    decision = integers(tree["decision_type"].split(), f"tree {number}: decision_type", n)
    nodes: list[Split | float] = []
    for i in range(n):
        if decision[i] & _CATEGORICAL:
            raise ModelError(f"tree {number} splits by categories: numbers alone are expected")
        missing = int(decision[i] >> 2)
        nodes.append(
            _split(
                number,
                feature_number(int(feature[i]), n_features),
                float(threshold[i]),
                bool(decision[i] & _DEFAULT_LEFT),
                _MISSING[missing] if 0 <= missing < len(_MISSING) else str(missing),
            )
        )
    # Leaf i has the number -1 - i.
    child = [
        np.where(found >= 0, found, n - 1 - found).tolist()
        for found in (integers(tree[f"{side}_child"].split(), f"{side}_child", n) for side in ("left", "right"))
    ]
    return BinaryTree([*nodes, *leaves.tolist()], [*zip(*child, strict=True), *((0, 0) for _ in range(int(n_leaves)))])


def _tree_of_json(tree: Mapping[str, Any], number: int, n_features: int) -> BinaryTree:
    if tree["num_cat"]:
        raise ModelError(f"tree {number} splits by categories: numbers alone are expected")
    nodes: list[Split | float] = []
    children: list[tuple[int, int]] = []
    pending = [tree["tree_structure"]]
    for at in pending:  # grows
        if "split_feature" not in at:
            if "leaf_coeff" in at:
                raise ModelError(f"tree {number} has linear functions in its leaves: train with linear_tree=False")
            nodes.extend(finite([at["leaf_value"]], f"tree {number}: leaf_value").tolist())
            children.append((0, 0))
            continue
        if at["decision_type"] != "<=":
            raise ModelError(f"tree {number} splits by {at['decision_type']!r}: '<=' alone is expected")
        (feature,) = integers([at["split_feature"]], f"tree {number}: split_feature")
        (threshold,) = finite([at["threshold"]], f"tree {number}: threshold")
        feature = feature_number(int(feature), n_features)
        nodes.append(_split(number, feature, float(threshold), bool(at["default_left"]), at["missing_type"]))
        children.append((len(pending), len(pending) + 1))
        pending += [at["left_child"], at["right_child"]]
    return BinaryTree(nodes, children)
