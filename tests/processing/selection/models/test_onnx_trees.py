"""Trees of ONNX files: the responses of onnxruntime, and a named error for every file that cannot be used."""

from __future__ import annotations

import json
from collections.abc import Mapping
from pathlib import Path

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from hltnode.processing.selection.errors import ModelError
from hltnode.processing.selection.lines.learned_models import NetworkModel, TreeModel
from hltnode.processing.selection.models.ensemble import Ensemble
from hltnode.processing.selection.models.model_file import model_of, read_model
from tests.processing.selection.models.networks.onnx_writer import Values, file, message, node, value
from tests.processing.selection.models.test_model_files import responses

GOLDEN = Path(__file__).parent / "networks" / "golden"
FILES = ("boosted_trees.onnx", "forest.onnx", "numbers_of_trees.onnx")
ML = (8, message((1, "ai.onnx.ml"), (2, 3)))


@pytest.mark.parametrize(("name", "slope"), [(FILES[0], 1.0), (FILES[1], None), (FILES[2], None)])
def test_the_response_is_that_of_onnxruntime(name: str, slope: float | None) -> None:
    content = json.loads((GOLDEN / f"{Path(name).stem}.responses.json").read_text())
    model = read_model(GOLDEN / name)
    assert (model.slope, model.trees.n_trees, model.trees.n_features) == (slope, 8, 4)
    found = responses(model, np.array(content["inputs"], np.float32))
    assert np.ptp(found) > 0.2
    assert np.abs(found - content["responses"]).max() < 1e-5


STUMP: Mapping[str, Values] = {
    "nodes_treeids": [0, 0, 0],
    "nodes_nodeids": [0, 1, 2],
    "nodes_featureids": [1, 0, 0],
    "nodes_modes": ["BRANCH_LEQ", "LEAF", "LEAF"],
    "nodes_values": [4.0, 0.0, 0.0],
    "nodes_truenodeids": [1, 0, 0],
    "nodes_falsenodeids": [2, 0, 0],
}
"""x[1] <= 4 is leaf 1."""
NUMBER: Mapping[str, Values] = {
    **STUMP,
    "n_targets": 1,
    "target_treeids": [0, 0],
    "target_nodeids": [1, 2],
    "target_ids": [0, 0],
    "target_weights": [-2.0, 3.0],
}
CLASSES: Mapping[str, Values] = {
    **STUMP,
    "classlabels_int64s": [0, 1],
    "post_transform": "LOGISTIC",
    "class_treeids": [0, 0],
    "class_nodeids": [1, 2],
    "class_ids": [0, 0],
    "class_weights": [-2.0, 3.0],
}
TWO_SUMS: Mapping[str, Values] = {
    **STUMP,
    "classlabels_strings": ["no", "yes"],
    "class_treeids": [0, 0, 0, 0],
    "class_nodeids": [1, 1, 2, 2],
    "class_ids": [0, 1, 0, 1],
    "class_weights": [0.75, 0.25, 0.125, 0.875],
}
TWO_TREES: Mapping[str, Values] = {
    **NUMBER,
    **{name: [*entries, *entries] for name, entries in STUMP.items() if not isinstance(entries, int | float | str)},
    "nodes_treeids": [0, 0, 0, 7, 7, 7],
    "target_treeids": [0, 0, 7, 7],
    "target_nodeids": [1, 2, 1, 2],
    "target_ids": [0, 0, 0, 0],
    "target_weights": [-2.0, 3.0, 10.0, 20.0],
}


def trees(attributes: Mapping[str, Values], **changes: Values) -> bytes:
    """A file of one node. A change that is an empty list leaves the attribute out."""
    given = {name: each for name, each in {**attributes, **changes}.items() if each != []}
    if "class_ids" in given or "classlabels_int64s" in given:
        made = node("TreeEnsembleClassifier", "x", "label y", domain="ai.onnx.ml", **given)
        outputs = [value("label", -1, kind=8 if "classlabels_strings" in given else 7), value("y", -1, 2)]
    else:
        made = node("TreeEnsembleRegressor", "x", "y", domain="ai.onnx.ml", **given)
        outputs = [value("y", -1, 1)]
    return file([made], [], inputs=[value("x", -1, 2)], outputs=outputs, more=[ML])


def of(content: bytes, *x: float) -> list[float]:
    """Responses for numbers of the second feature."""
    inputs = np.array([[0.0, number] for number in x], np.float32)
    return [round(float(found), 6) for found in responses(model_of(content), inputs)]


AFTER = float(np.nextafter(np.float32(4), np.float32(5)))
BEFORE = float(np.nextafter(np.float32(4), np.float32(3)))


@pytest.mark.parametrize(
    ("mode", "at_the_border"),
    [
        ("BRANCH_LEQ", [-2.0, -2.0, 3.0]),
        ("BRANCH_LT", [-2.0, 3.0, 3.0]),
        ("BRANCH_GTE", [3.0, -2.0, -2.0]),
        ("BRANCH_GT", [3.0, 3.0, -2.0]),
    ],
)
def test_a_comparison_decides_at_its_border_and_sends_nan_to_the_way_of_the_file(
    mode: str, at_the_border: list[float]
) -> None:
    content = trees(NUMBER, nodes_modes=[mode, "LEAF", "LEAF"])
    assert of(content, BEFORE, 4.0, AFTER, np.nan) == [*at_the_border, 3.0]
    for tracks, of_nan in ((1, -2.0), (0, 3.0)):
        content = trees(
            NUMBER, nodes_modes=[mode, "LEAF", "LEAF"], nodes_missing_value_tracks_true=[tracks, 1 - tracks, 0]
        )
        assert of(content, 4.0, np.nan) == [at_the_border[1], of_nan]


def test_sums_have_their_base_and_averages_add_it_after_the_division() -> None:
    assert of(trees(NUMBER, base_values=[0.5]), 4.0, 5.0) == [-1.5, 3.5]
    assert of(trees(TWO_TREES), 4.0, 5.0) == [8.0, 23.0]
    assert of(trees(TWO_TREES, aggregate_function="AVERAGE", base_values=[1.0]), 4.0, 5.0) == [5.0, 12.5]


def test_two_classes_may_have_one_sum_with_or_without_the_logistic_function_or_one_sum_each() -> None:
    expected = [round(float(1 / (1 + np.exp(-each))), 6) for each in (-1.5, 3.5)]
    assert of(trees(CLASSES, base_values=[0.5]), 4.0, 5.0) == expected
    assert of(trees(CLASSES, post_transform="NONE"), 4.0, 5.0) == [-2.0, 3.0]
    assert of(trees(CLASSES, post_transform="NONE", class_weights=[0.25, 1.0]), 4.0, 5.0) == [0.25, 1.0]
    assert of(trees(TWO_SUMS), 4.0, 5.0) == [0.25, 0.875]


def test_nodes_behind_the_root_may_have_any_numbers_and_any_order() -> None:
    content = trees(
        NUMBER,
        nodes_nodeids=[5, 12, 11],
        nodes_truenodeids=[11, 0, 0],
        nodes_falsenodeids=[12, 0, 0],
        target_nodeids=[11, 12],
    )
    assert of(content, 4.0, 5.0) == [-2.0, 3.0]


ROOT_LAST: Mapping[str, Values] = {
    "nodes_featureids": [0, 0, 1],
    "nodes_modes": ["LEAF", "LEAF", "BRANCH_LEQ"],
    "nodes_values": [0.0, 0.0, 4.0],
    "nodes_nodeids": [1, 2, 0],
    "nodes_truenodeids": [0, 0, 1],
    "nodes_falsenodeids": [0, 0, 2],
}
IN_TURN: Mapping[str, Values] = {
    "nodes_treeids": [0, 7, 0, 7, 0, 7],
    "nodes_nodeids": [0, 0, 1, 1, 2, 2],
    "nodes_featureids": [1, 1, 0, 0, 0, 0],
    "nodes_modes": ["BRANCH_LEQ", "BRANCH_LEQ", "LEAF", "LEAF", "LEAF", "LEAF"],
    "nodes_values": [4.0, 4.0, 0.0, 0.0, 0.0, 0.0],
    "nodes_truenodeids": [1, 1, 0, 0, 0, 0],
    "nodes_falsenodeids": [2, 2, 0, 0, 0, 0],
}
FIRST_CLASS_ALONE: Mapping[str, Values] = {
    "class_treeids": [0, 0, 0],
    "class_nodeids": [1, 2, 2],
    "class_ids": [0, 0, 1],
    "class_weights": [0.75, 0.125, 0.875],
}


def test_casts_of_the_input_and_the_shape_of_a_number_change_nothing() -> None:
    nodes = [
        node("Cast", "x", "a", to=1),
        node("TreeEnsembleRegressor", "a", "b", domain="ai.onnx.ml", **NUMBER),
        node("Reshape", "b", "y"),
    ]
    assert of(file(nodes, [], more=[ML]), 4.0, 5.0) == [-2.0, 3.0]
    open_shape = file([nodes[1]], [], inputs=[value("a", 0, 0)], outputs=[value("b", 0, 1)], more=[ML])
    assert model_of(open_shape).trees.n_features == 2


def test_lines_take_trees_of_onnx_files_as_trees() -> None:
    fields = ["pt", "eta", "chi2", "doca"]
    assert TreeModel(GOLDEN / "forest.onnx", features=fields).features == tuple(fields)
    with pytest.raises(ModelError, match=r"forest\.onnx: .*TreeModel"):
        NetworkModel(GOLDEN / "forest.onnx", features=fields)


# --- what is refused --------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("content", "expected"),
    [
        (trees(NUMBER, nodes_modes=["BRANCH_EQ", "LEAF", "LEAF"]), "tree 0 splits by BRANCH_EQ: BRANCH_LEQ"),
        (trees(NUMBER, nodes_values=[np.nan, 0.0, 0.0]), "nodes_values: nan is not a finite number"),
        (trees(NUMBER, nodes_values=[4.0, 0.0]), "nodes_values has 2 entries, expected 3"),
        (trees(NUMBER, nodes_truenodeids=[1, 0]), "nodes_truenodeids has 2 entries, expected 3"),
        (trees(NUMBER, nodes_missing_value_tracks_true=[1]), "nodes_missing_value_tracks_true has 1 entries"),
        (trees(NUMBER, target_nodeids=[1]), "target_nodeids has 1 entries, expected 2"),
        (trees(NUMBER, target_weights=[1.0]), "target_weights has 1 entries, expected 2"),
        (trees(NUMBER, target_weights=[np.inf, 0.0]), "target_weights: inf is not a finite number"),
        (trees(NUMBER, target_nodeids=[1, 1]), "tree 0: leaf 1 has two weights"),
        (trees(NUMBER, target_nodeids=[1, 0]), "tree 0: node 0 has a weight and is no leaf"),
        (trees(NUMBER, target_nodeids=[1, 9]), "tree 0: node 9 has a weight and is no leaf"),
        (trees(NUMBER, nodes_nodeids=[0, 1, 1]), "tree 0 has two nodes 1"),
        (trees(NUMBER, nodes_truenodeids=[9, 0, 0]), "tree 0 has 2 roots, or a child that is no node of it"),
        (trees(NUMBER, nodes_truenodeids=[0, 0, 0]), "tree 0: 2 nodes are not reached from its root 1"),
        (trees(NUMBER, nodes_falsenodeids=[1, 0, 0]), "tree 0 has 2 roots"),
        (trees(NUMBER, nodes_featureids=[2, 0, 0]), "a split uses feature 2, the model has 2"),
        (trees(NUMBER, nodes_featureids=[-1, 0, 0]), "a split uses feature -1"),
        (trees(NUMBER, n_targets=2), "2 targets: one number as response is expected"),
        (trees(NUMBER, target_ids=[0, 1]), "1 targets: one number as response is expected"),
        (trees(NUMBER, base_values=[0.0, 1.0]), "targets: one number as response is expected"),
        (trees(NUMBER, aggregate_function="MAX"), "aggregate_function MAX: SUM or AVERAGE are expected"),
        (trees(NUMBER, post_transform="LOGISTIC"), "post_transform LOGISTIC of a regression: NONE is expected"),
        (trees(NUMBER, nodes_values_as_tensor=b""), "nodes_values_as_tensor: numbers in single precision"),
        (trees(NUMBER, base_values=[3e38], target_weights=[3e38, 0.0]), "at most 1e\\+38 is allowed"),
        (trees(CLASSES, classlabels_int64s=[0, 1, 2]), "3 classes: two classes, or a number"),
        (trees(CLASSES, class_ids=[0, 2]), "2 classes: two classes, or a number"),
        (trees(CLASSES, post_transform="SOFTMAX"), "post_transform SOFTMAX: NONE or LOGISTIC are expected"),
        (trees(CLASSES, post_transform="SOFTMAX_ZERO"), "post_transform SOFTMAX_ZERO: NONE or LOGISTIC are expected"),
        (trees(CLASSES, base_values=[0.0, 1.0]), "2 base_values for one sum: at most one is expected"),
        (trees(CLASSES, class_weights=[2.0, 3.0]), "post_transform LOGISTIC without a negative weight"),
        (trees(CLASSES, class_ids=[1, 1], base_values=[0.5]), "base_values and weights of the second class alone"),
        (
            trees(
                CLASSES, class_treeids=[0], class_nodeids=[1], class_ids=[0], class_weights=[-2.0], base_values=[0.5]
            ),
            "base_values and a leaf without weight",
        ),
        (trees(TWO_SUMS, **FIRST_CLASS_ALONE), "tree 0: leaf 1 has a weight for the first class, none for the second"),
        (trees(NUMBER, **ROOT_LAST), "tree 0 begins with node 1: its root 0 is expected first"),
        (trees(TWO_TREES, **IN_TURN), "tree 0: its nodes are not one after another"),
        (trees(NUMBER, nodes_treeids=[-1, -1, -1], target_treeids=[-1, -1]), "tree -1: a number from 0 on"),
        (trees(TWO_SUMS, post_transform="LOGISTIC"), "weights for both classes with a post_transform"),
        (trees(TWO_SUMS, base_values=[0.0, 1.0]), "weights for both classes with a post_transform or base_values"),
        (trees({}, n_targets=1), "0 trees, expected 1 to 5000"),
    ],
)
def test_trees_that_cannot_be_used_are_refused_by_name(content: bytes, expected: str) -> None:
    with pytest.raises(ModelError, match=expected):
        model_of(content)


def test_a_node_with_two_parents_is_refused() -> None:
    content = trees(
        NUMBER,
        nodes_treeids=[0, 0, 0, 0],
        nodes_nodeids=[0, 1, 2, 3],
        nodes_featureids=[1, 1, 0, 0],
        nodes_modes=["BRANCH_LEQ", "BRANCH_LEQ", "LEAF", "LEAF"],
        nodes_values=[4.0, 2.0, 0.0, 0.0],
        nodes_truenodeids=[1, 2, 0, 0],
        nodes_falsenodeids=[2, 3, 0, 0],
        target_nodeids=[2, 3],
    )
    with pytest.raises(ModelError, match="tree 0: node 2 has two parents"):
        model_of(content)


def test_operators_around_trees_and_newer_ones_are_refused_by_name() -> None:
    ml = "ai.onnx.ml"
    after = [node("TreeEnsembleRegressor", "x", "a", domain=ml, **NUMBER), node("Relu", "a", "y")]
    with pytest.raises(ModelError, match=r"operator TreeEnsembleRegressor before another operator: trees"):
        model_of(file(after, [], more=[ML]))
    before = [node("Relu", "x", "a"), node("TreeEnsembleRegressor", "a", "y", domain=ml, **NUMBER)]
    with pytest.raises(ModelError, match="trees of the result of Relu: an input of the graph is expected"):
        model_of(file(before, [], more=[ML]))
    shape = [node("TreeEnsembleClassifier", "x", "l p", domain=ml, **CLASSES), node("Reshape", "p", "y")]
    with pytest.raises(ModelError, match="another shape of the probabilities"):
        model_of(file(shape, [], more=[ML]))
    with pytest.raises(ModelError, match="operator TreeEnsemble: a dense network"):
        model_of(file([node("TreeEnsemble", "x", "y", domain=ml)], [], more=[ML]))
    circle = [node("Identity", "b", "a"), node("Identity", "a", "b"), node("Relu", "b", "y")]
    with pytest.raises(ModelError, match="no node makes"):
        model_of(file(circle, []))


@settings(max_examples=300)
@given(st.sampled_from(FILES), st.integers(0, 1 << 20), st.binary(max_size=4))
def test_damaged_bytes_are_refused_or_give_trees(name: str, place: int, other: bytes) -> None:
    content = (GOLDEN / name).read_bytes()
    place %= len(content)
    for damaged in (content[:place] + other + content[place + max(len(other), 1) :], content[:place]):
        try:
            model = model_of(damaged)
        except ModelError:
            continue
        assert isinstance(model.table, Ensemble)
        assert np.isfinite(responses(model, np.full((3, model.table.n_features), 0.5, np.float32))).all()


_NUMBERS = st.lists(st.integers(-1, 4), min_size=3, max_size=3)


@settings(max_examples=300)
@given(_NUMBERS, _NUMBERS, _NUMBERS, st.lists(st.sampled_from(["LEAF", "BRANCH_LT"]), min_size=3, max_size=3))
def test_any_lists_of_nodes_are_refused_or_give_a_tree(
    numbers: list[int], true: list[int], false: list[int], modes: list[str]
) -> None:
    content = trees(NUMBER, nodes_nodeids=numbers, nodes_truenodeids=true, nodes_falsenodeids=false, nodes_modes=modes)
    try:
        model = model_of(content)
    except ModelError:
        return
    assert set(responses(model, np.array([[0, 0], [9, 9]], np.float32))) <= {-2.0, 0.0, 3.0}
