"""Model files: the responses of the libraries, and a named error for every file that cannot be used."""

from __future__ import annotations

import copy
import json
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from numpy.typing import NDArray

from hltnode.processing.selection.errors import ModelError
from hltnode.processing.selection.models import model_file, xgboost_file
from hltnode.processing.selection.models.learned import LearnedModel
from hltnode.processing.selection.models.model_file import model_of, read_model
from tests.processing.selection.models.training_data import FEATURES

GOLDEN = Path(__file__).parent / "golden"
FILES = ("xgboost.json", "lightgbm.txt", "lightgbm.json", "catboost.json")


def responses(model: LearnedModel, inputs: NDArray[np.float32]) -> NDArray[np.float64]:
    sums = model.trees.sums(list(inputs.T)).astype(np.float64)
    return sums if model.slope is None else 1.0 / (1.0 + np.exp(-model.slope * sums))


@pytest.mark.parametrize("name", FILES)
def test_the_response_is_that_of_the_library(name: str) -> None:
    content = json.loads((GOLDEN / f"{Path(name).stem}.responses.json").read_text())
    inputs = np.array(content["inputs"], np.float32)
    assert np.isnan(inputs).any()
    model = read_model(GOLDEN / name)
    assert (model.features, model.slope, model.trees.n_trees) == (FEATURES, 1.0, 6)
    found = responses(model, inputs)
    assert np.ptp(found) > 0.3
    assert np.abs(found - content["responses"]).max() < 1e-5


def test_lightgbm_takes_0_for_a_nan_of_a_feature_that_was_never_missing() -> None:
    model = read_model(GOLDEN / "lightgbm.txt")
    inputs = np.array(json.loads((GOLDEN / "lightgbm.responses.json").read_text())["inputs"], np.float32)
    for feature in (1, 2, 3):
        missing, zero = inputs.copy(), inputs.copy()
        missing[:, feature], zero[:, feature] = np.nan, 0.0
        assert responses(model, missing).tolist() == responses(model, zero).tolist()


def test_both_forms_of_lightgbm_have_the_same_table() -> None:
    assert read_model(GOLDEN / "lightgbm.txt").trees == read_model(GOLDEN / "lightgbm.json").trees


def test_the_muon_model_of_the_shared_folder_is_read(shared: Path) -> None:
    model = read_model(shared / "data" / "lhcb-parameters" / "muon_catboost_model.json")
    assert (model.trees.n_trees, model.trees.n_features, model.slope) == (571, 20, 1.0)
    assert model.features[0] == "feature 0"


# --- what is refused --------------------------------------------------------------------------------------------------


def changed(name: str, values: dict[str, object]) -> dict[str, Any]:
    content: dict[str, Any] = json.loads((GOLDEN / name).read_text())
    for path, value in values.items():
        *parts, last = (int(part) if part.isdigit() else part for part in path.split("__"))
        at: Any = content
        for part in parts:
            at = at[part]
        at[last] = value
    return content


_LEARNER = "learner__gradient_booster__model__trees__0__"


@pytest.mark.parametrize(
    ("path", "value", "message"),
    [
        ("version", [4, 0, 0], "XGBoost 4.0.0: versions 1 to 3 are read"),
        ("version", 3, "damaged, or of another version"),
        ("learner__objective__name", "multi:softprob", "objective 'multi:softprob': expected one of binary:logistic"),
        ("learner__gradient_booster__name", "dart", "booster 'dart': only 'gbtree' is read"),
        ("learner__learner_model_param__num_class", "3", "several classes or targets"),
        ("learner__learner_model_param__num_target", "2", "several classes or targets"),
        ("learner__learner_model_param__num_feature", "5", "4 names of features for 5 features"),
        ("learner__learner_model_param__base_score", "[1E0]", "base_score: 1, expected a probability"),
        ("learner__learner_model_param__base_score", "[nan]", "base_score: nan is not a finite number"),
        ("learner__learner_model_param__base_score", "[5E-1,5E-1]", "base_score: a list of 1 numbers"),
        ("learner__feature_names", ["x", "x", "y", "z"], "two features have the same name"),
        ("learner__feature_names", [1, 2, 3, 4], "the names of the features are not texts"),
        ("learner__attributes", {"best_iteration": "2"}, r"6 rounds, the best is 2: save booster\[: 3\]"),
        (_LEARNER + "split_indices__0", 4, "a split uses feature 4, the model has 4"),
        (_LEARNER + "split_indices__0", 0.5, "split_indices: integers are expected"),
        (_LEARNER + "split_conditions__0", float("nan"), "tree 0: split_conditions: nan is not a finite number"),
        (_LEARNER + "split_conditions__0", float("inf"), "tree 0: split_conditions: inf is not a finite number"),
        (_LEARNER + "split_conditions__0", 1e39, r"a threshold is 1e\+39, expected a finite number"),
        (_LEARNER + "split_conditions", [0.5], r"split_conditions: a list of \d+ numbers is expected"),
        (_LEARNER + "split_conditions", [[0.5]], r"split_conditions: a list of \d+ numbers is expected"),
        (_LEARNER + "left_children__0", 0, "tree 0: node 0 has the child 0: not a tree"),
        (_LEARNER + "right_children__0", 99, "tree 0: node 0 has the child 99: not a tree"),
        (_LEARNER + "split_type__0", 1, "tree 0 splits by categories"),
        (_LEARNER + "tree_param__size_leaf_vector", "3", "tree 0 has several values in each leaf"),
        (_LEARNER + "left_children", [], "right_children: a list of 0 numbers"),
        ("learner__gradient_booster__model__trees", [{}] * 5001, "5001 trees, at most 5000"),
        ("learner__gradient_booster__model__trees", [], "0 trees, expected 1 to 5000"),
    ],
)
def test_a_file_of_xgboost_is_refused(path: str, value: object, message: str) -> None:
    assert_refused("xgboost.json", {path: value}, message)


@pytest.mark.parametrize(
    ("path", "value", "message"),
    [
        ("model_info__params__loss_function__type", "MultiClass", "loss function 'MultiClass': expected one of"),
        ("features_info__float_features__0__nan_value_treatment", "Odd", "nan_value_treatment 'Odd'"),
        ("features_info__float_features__1__flat_feature_index", 5, "a list of features without gaps"),
        ("features_info__categorical_features", [{}], "features that are no numbers"),
        ("scale_and_bias", [float("nan"), [0]], "scale_and_bias: nan is not a finite number"),
        ("scale_and_bias", [1, [0, 0]], "damaged, or of another version"),
        ("oblivious_trees__0__splits__0__split_type", "OnlineCtr", "tree 0 splits by 'OnlineCtr'"),
        ("oblivious_trees__0__splits__0__float_feature_index", 9, "a split uses feature 9, the model has 4"),
        ("oblivious_trees__0__splits__0__border", float("nan"), "tree 0: border: nan is not a finite number"),
        ("oblivious_trees__2__leaf_values__0", float("-inf"), "tree 2: leaf_values: -inf is not a finite number"),
        ("oblivious_trees__2__leaf_values", [1.0], "tree 2: 1 leaves for 3 splits, expected 8"),
        ("oblivious_trees", [{}] * 5001, "5001 trees, at most 5000"),
    ],
)
def test_a_file_of_catboost_is_refused(path: str, value: object, message: str) -> None:
    assert_refused("catboost.json", {path: value}, message)


def test_trees_of_catboost_that_are_not_symmetric_are_refused() -> None:
    content = changed("catboost.json", {})
    content["trees"] = content.pop("oblivious_trees")
    with pytest.raises(ModelError, match="train with grow_policy='SymmetricTree'"):
        model_of(json.dumps(content).encode())


@pytest.mark.parametrize(
    ("path", "value", "message"),
    [
        ("version", "v9", "LightGBM file v9: v3 and v4 are read"),
        ("num_class", 3, "several classes"),
        ("average_output", True, "a random forest"),
        ("objective", "poisson", "objective 'poisson': expected binary"),
        ("objective", "regression sqrt", "objective 'regression sqrt': expected binary"),
        ("objective", "binary sigmoid:nan", "objective: nan is not a finite number"),
        ("tree_info__0__num_cat", 1, "tree 0 splits by categories"),
        ("tree_info__0__tree_structure__decision_type", "==", "tree 0 splits by '=='"),
        ("tree_info__0__tree_structure__missing_type", "Zero", "train with zero_as_missing=False"),
        ("tree_info__0__tree_structure__missing_type", "Odd", "tree 0: missing_type 'Odd'"),
        ("tree_info__0__tree_structure__threshold", float("nan"), "tree 0: threshold: nan is not a finite number"),
        ("tree_info__0__tree_structure__split_feature", 4, "a split uses feature 4, the model has 4"),
        (
            "tree_info__0__tree_structure__left_child",
            {"leaf_value": 1, "leaf_coeff": [1]},
            "train with linear_tree=False",
        ),
        ("tree_info__0__tree_structure__left_child", {"leaf_value": float("inf")}, "leaf_value: inf is not a finite"),
    ],
)
def test_a_json_file_of_lightgbm_is_refused(path: str, value: object, message: str) -> None:
    assert_refused("lightgbm.json", {path: value}, message)


def assert_refused(name: str, values: dict[str, object], message: str) -> None:
    with pytest.raises(ModelError, match=message):
        model_of(json.dumps(changed(name, values)).encode())


@pytest.mark.parametrize(
    ("before", "after", "message"),
    [
        ("version=v4", "version=v2", "LightGBM file v2: v3 and v4 are read"),
        ("version=v4\n", "", "of another version of LightGBM: it has no 'version'"),
        ("num_cat=0", "num_cat=1", "tree 0 splits by categories"),
        ("is_linear=0", "is_linear=1", "train with linear_tree=False"),
        ("num_leaves=7", "num_leaves=8", "tree 0: leaf_value: a list of 8 numbers"),
        ("num_leaves=7", "num_leaves=0", "tree 0: 0 leaves, expected 1 to"),
        ("label_index=0", "average_output", "a random forest"),
        ("end of trees", "", "the file ends before its trees do"),
        ("\ndecision_type=", "\ndecision_type=1 ", "decision_type: a list of 6 numbers"),
        ("\ndecision_type=2", "\ndecision_type=3", "tree 0 splits by categories"),
        ("\ndecision_type=2", "\ndecision_type=6", "train with zero_as_missing=False"),
        ("\ndecision_type=2", "\ndecision_type=14", "tree 0: missing_type '3'"),
        ("\nleft_child=-1", "\nleft_child=50", "tree 0: node 0 has the child 50: not a tree"),
        ("\nleaf_value=", "\nleaf_value=x", "leaf_value: a list of numbers is expected"),
        ("max_feature_idx=3", "max_feature_idx=z", "damaged, or of another version of LightGBM"),
    ],
)
def test_a_text_file_of_lightgbm_is_refused(before: str, after: str, message: str) -> None:
    text = (GOLDEN / "lightgbm.txt").read_text()
    text = text.replace("\ndecision_type=8", "\ndecision_type=2").replace("\ndecision_type=10", "\ndecision_type=2")
    assert before in text
    with pytest.raises(ModelError, match=message):
        model_of(text.replace(before, after, 1).encode())


@pytest.mark.parametrize(
    ("content", "message"),
    [
        (b"", "not a model file, JSON of XGBoost or CatBoost"),
        (b"\xff\xfe", "not a model file"),
        (b"{", "not a model file"),
        (b"[" * 100_000, "not a model file"),
        (b"[]", "a JSON object is expected"),
        (b'{"a": 1}', "none of the keys learner, features_info, tree_info"),
        (b'{"learner": 1}', "it has no 'version'"),
        (b'{"features_info": {}, "oblivious_trees": []}', "it has no 'model_info'"),
        (b"tree\nend of trees\n", "it has no"),
    ],
)
def test_what_is_no_model_file_is_refused(content: bytes, message: str) -> None:
    with pytest.raises(ModelError, match=message):
        model_of(content)


def test_a_number_of_features_without_bound_makes_no_names(monkeypatch: pytest.MonkeyPatch) -> None:
    def made(_values: object, n: int) -> tuple[str, ...]:
        pytest.fail(f"{n} names")

    monkeypatch.setattr(xgboost_file, "names", made)
    values: dict[str, object] = {
        "learner__learner_model_param__num_feature": "1000000000000",
        "learner__feature_names": [],
    }
    assert_refused("xgboost.json", values, "1000000000000 features, expected 1 to 256")


def test_the_message_names_the_file(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    with pytest.raises(ModelError, match=r"none\.json: cannot be read: No such file"):
        read_model(tmp_path / "none.json")
    (tmp_path / "mine.json").write_text("[]")
    with pytest.raises(ModelError, match=r"mine\.json: not a model file: a JSON object"):
        read_model(tmp_path / "mine.json")
    monkeypatch.setattr(model_file, "MAX_BYTES", 1)
    with pytest.raises(ModelError, match=r"mine\.json: 2 bytes, at most 1 are read"):
        read_model(tmp_path / "mine.json")


def _paths(value: Any, path: tuple[Any, ...] = ()) -> list[tuple[Any, ...]]:
    found = [path] if path else []
    items = value.items() if isinstance(value, dict) else enumerate(value) if isinstance(value, list) else ()
    for key, each in items:
        found += _paths(each, (*path, key))
    return found


CONTENTS = {name: json.loads((GOLDEN / name).read_text()) for name in FILES if name.endswith(".json")}
PATHS = {name: _paths(content) for name, content in CONTENTS.items()}
ODD: st.SearchStrategy[Any] = st.one_of(
    st.sampled_from(
        [None, True, -1, 2**70, 0.5, float("nan"), float("inf"), 1e300, "", "x", "nan", [], {}, [[1]], [None]]
    ),
    st.integers(-3, 300),
    st.floats(),
)


def _with(content: Any, path: tuple[Any, ...], change: Callable[[Any, Any], None]) -> Any:
    made = copy.deepcopy(content)
    at = made
    for key in path[:-1]:
        at = at[key]
    change(at, path[-1])
    return made


@settings(max_examples=250)
@given(st.data())
def test_a_damaged_value_is_refused_or_gives_finite_sums(data: st.DataObject) -> None:
    name = data.draw(st.sampled_from(sorted(CONTENTS)))
    path = data.draw(st.sampled_from(PATHS[name]))
    if data.draw(st.booleans()):
        value = data.draw(ODD)
        damaged = _with(CONTENTS[name], path, lambda at, key: at.__setitem__(key, value))
    else:
        damaged = _with(CONTENTS[name], path, lambda at, key: at.__delitem__(key))
    _assert_refused_or_finite(json.dumps(damaged).encode())


@settings(max_examples=150)
@given(st.sampled_from(FILES), st.integers(0, 1 << 20), st.binary(max_size=4))
def test_damaged_bytes_are_refused_or_give_finite_sums(name: str, place: int, other: bytes) -> None:
    content = (GOLDEN / name).read_bytes()
    place %= len(content)
    _assert_refused_or_finite(content[:place] + other + content[place + len(other) + (not other) :])
    _assert_refused_or_finite(content[:place])


def _assert_refused_or_finite(content: bytes) -> None:
    try:
        model = model_of(content)
    except ModelError:
        return
    inputs = np.array([[np.nan] * 300, [0.0] * 300, [np.inf] * 300], np.float32)[:, : model.trees.n_features]
    assert np.isfinite(model.trees.sums(list(inputs.T))).all()
