"""Models that CatBoost saved as JSON: `save_model("NAME.json", format="json")`."""

from collections.abc import Mapping
from typing import Any

from hltnode.processing.selection.errors import ModelError
from hltnode.processing.selection.models.ensemble import MAX_TREES, Ensemble, ObliviousTree, Split, nearest
from hltnode.processing.selection.models.learned import LearnedModel, feature_number, finite, integers, names

_LOGISTIC = ("Logloss", "CrossEntropy")
_IDENTITY = ("RMSE", "MAE", "MAPE", "Quantile", "Huber", "LogCosh", "QueryRMSE", "PairLogit", "YetiRank")
_NAN_RIGHT = {"AsIs": False, "AsFalse": False, "AsTrue": True}


def from_json(content: Mapping[str, Any]) -> LearnedModel:
    """The trees of the JSON object. Raises ModelError, and the errors of a damaged object (model_file.py)."""
    if "oblivious_trees" not in content:
        raise ModelError("trees with other splits in each node: train with grow_policy='SymmetricTree'")
    loss = content["model_info"]["params"]["loss_function"]["type"]
    if loss not in (*_LOGISTIC, *_IDENTITY):
        raise ModelError(f"loss function {loss!r}: expected one of {', '.join((*_LOGISTIC, *_IDENTITY))}")
    features_info = content["features_info"]
    if any(features_info.get(kind) for kind in ("categorical_features", "text_features", "embedding_features")):
        raise ModelError("features that are no numbers: numbers alone are expected")
    features = sorted(features_info["float_features"], key=lambda feature: int(feature["feature_index"]))
    if [feature["flat_feature_index"] for feature in features] != list(range(len(features))):
        raise ModelError("features_info: a list of features without gaps is expected")
    nan_right = [_nan_right(feature["nan_value_treatment"]) for feature in features]
    # Older versions write no scale; newer ones a list of biases, one for each response.
    scale, bias = content.get("scale_and_bias", (1.0, [0.0]))
    (bias,) = finite(bias if isinstance(bias, list) else [bias], "scale_and_bias", None)
    (scale,) = finite([scale], "scale_and_bias")
    trees = content["oblivious_trees"]
    if len(trees) > MAX_TREES:
        raise ModelError(f"{len(trees)} trees, at most {MAX_TREES} are allowed")
    table = Ensemble.of_trees([_tree(tree, i, scale, nan_right) for i, tree in enumerate(trees)], len(features), bias)
    given = [feature.get("feature_id") for feature in features]
    return LearnedModel(
        table, names(given if any(given) else None, len(features)), slope=1.0 if loss in _LOGISTIC else None
    )


def _nan_right(treatment: str) -> bool:
    if treatment not in _NAN_RIGHT:
        raise ModelError(f"nan_value_treatment {treatment!r}: expected one of {', '.join(_NAN_RIGHT)}")
    return _NAN_RIGHT[treatment]


def _tree(tree: Mapping[str, Any], number: int, scale: float, nan_right: list[bool]) -> ObliviousTree:
    splits = []
    for split in tree["splits"] or ():
        if split["split_type"] != "FloatFeature":
            raise ModelError(f"tree {number} splits by {split['split_type']!r}: 'FloatFeature' alone is expected")
        (feature,) = integers([split["float_feature_index"]], f"tree {number}: float_feature_index")
        (border,) = finite([split["border"]], f"tree {number}: border")
        feature = feature_number(int(feature), len(nan_right))
        # CatBoost computes with single precision, and writes 10 digits: the nearest float is the border.
        splits.append(Split(feature, nearest(border), nan_right[feature]))
    return ObliviousTree(splits, (scale * finite(tree["leaf_values"], f"tree {number}: leaf_values")).tolist())
