"""Models that XGBoost saved as JSON: `Booster.save_model("NAME.json")`, versions 1 to 3."""

from collections.abc import Mapping
from typing import Any

import numpy as np

from hltnode.processing.selection.errors import ModelError
from hltnode.processing.selection.models.ensemble import MAX_TREES, BinaryTree, Ensemble, Split, below, nearest
from hltnode.processing.selection.models.learned import LearnedModel, feature_number, finite, integers, names

VERSIONS = range(1, 4)
_LOGISTIC = ("binary:logistic", "reg:logistic")
_IDENTITY = ("reg:squarederror", "reg:absoluteerror", "reg:pseudohubererror", "rank:pairwise", "rank:ndcg")


def from_json(content: Mapping[str, Any]) -> LearnedModel:
    """The trees of the JSON object. Raises ModelError, and the errors of a damaged object (model_file.py)."""
    if content["version"][0] not in VERSIONS:
        version = ".".join(map(str, content["version"]))
        raise ModelError(f"XGBoost {version}: versions {VERSIONS[0]} to {VERSIONS[-1]} are read")
    learner = content["learner"]
    booster, parameters = learner["gradient_booster"], learner["learner_model_param"]
    objective = learner["objective"]["name"]
    if booster["name"] != "gbtree":
        raise ModelError(f"booster {booster['name']!r}: only 'gbtree' is read")
    if objective not in (*_LOGISTIC, *_IDENTITY):
        raise ModelError(f"objective {objective!r}: expected one of {', '.join((*_LOGISTIC, *_IDENTITY))}")
    if int(parameters["num_class"]) > 1 or int(parameters.get("num_target", 1)) > 1:
        raise ModelError("several classes or targets: a model with one response is expected")
    n_features = int(parameters["num_feature"])
    model = booster["model"]
    if len(model["trees"]) > MAX_TREES:
        raise ModelError(f"{len(model['trees'])} trees, at most {MAX_TREES} are allowed")
    _check_best_iteration(learner.get("attributes", {}), model)
    base = _base(parameters["base_score"], logistic=objective in _LOGISTIC)
    table = Ensemble.of_trees([_tree(tree, i, n_features) for i, tree in enumerate(model["trees"])], n_features, base)
    features = names(learner.get("feature_names"), n_features)
    return LearnedModel(table, features, slope=1.0 if objective in _LOGISTIC else None)


def _base(text: object, *, logistic: bool) -> float:
    """The sum without trees. Version 3.1 writes a list of one number as text, earlier ones a number as text."""
    (score,) = finite(str(text).strip("[]").split(","), "base_score", 1)
    if not logistic:
        return float(score)
    if not 0 < score < 1:
        raise ModelError(f"base_score: {score:g}, expected a probability between 0 and 1")
    score = np.float32(score)
    return float(-np.log(1.0 / np.float64(score) - 1.0))


def _check_best_iteration(attributes: Mapping[str, str], model: Mapping[str, Any]) -> None:
    """After an early stop XGBoost predicts with all trees or with the best ones, depending on the function."""
    if "best_iteration" not in attributes:
        return
    best = int(attributes["best_iteration"])
    per_round = int(model["gbtree_model_param"]["num_parallel_tree"])
    rounds = len(model["trees"]) // max(per_round, 1)
    if best + 1 < rounds:
        raise ModelError(
            f"{rounds} rounds, the best is {best}: save booster[: {best + 1}], which has no rounds behind the best one"
        )


def _tree(tree: Mapping[str, Any], number: int, n_features: int) -> BinaryTree:
    left, right = integers(tree["left_children"], "left_children"), integers(tree["right_children"], "right_children")
    n = len(left)
    integers(right, "right_children", n)
    threshold = finite(tree["split_conditions"], f"tree {number}: split_conditions", n)
    feature = integers(tree["split_indices"], "split_indices", n)
    nan_left = integers(tree["default_left"], "default_left", n)
    if any(tree.get("split_type", ())) or tree.get("categories"):
        raise ModelError(f"tree {number} splits by categories: numbers alone are expected")
    if int(tree["tree_param"].get("size_leaf_vector", 1)) > 1:
        raise ModelError(f"tree {number} has several values in each leaf: one is expected")
    if n == 0:
        raise ModelError(f"tree {number} has no node")
    nodes: list[Split | float] = []
    for i in range(n):
        if left[i] < 0:
            nodes.append(float(threshold[i]))
        else:
            # XGBoost goes left below the threshold.
            nodes.append(
                Split(feature_number(int(feature[i]), n_features), below(nearest(threshold[i])), not nan_left[i])
            )
    return BinaryTree(nodes, list(zip(left.tolist(), right.tolist(), strict=True)))
