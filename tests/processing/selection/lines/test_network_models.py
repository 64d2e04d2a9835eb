"""Networks in lines: decisions on every back end, features, and TCK documents with the network."""

from __future__ import annotations

import json
import shutil
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from hltnode.processing.framework.backends.factory import create_backend
from hltnode.processing.framework.limits import BatchLimits
from hltnode.processing.lhcb.chain import CHAIN
from hltnode.processing.lhcb.lines.line_types.two_track_network import FILE, TWO_TRACK_NETWORK
from hltnode.processing.raw.chain import CHAIN as RAW
from hltnode.processing.selection.configuration.tck import TckDocument
from hltnode.processing.selection.configuration.trigger_config import content_hash, content_key
from hltnode.processing.selection.errors import LineError, ModelError, TriggerConfigError
from hltnode.processing.selection.evaluation.networks import responses
from hltnode.processing.selection.expressions.canonical import Reader
from hltnode.processing.selection.expressions.functions import log, maximum, minimum
from hltnode.processing.selection.expressions.nodes import columns_of, models_of
from hltnode.processing.selection.expressions.units import MeV
from hltnode.processing.selection.lines.inputs import any_of
from hltnode.processing.selection.lines.learned_models import NetworkModel, TreeModel
from hltnode.processing.selection.lines.line import Line, line_of_content
from hltnode.processing.selection.models.learned import LearnedModel
from hltnode.processing.selection.models.model_file import read_model
from hltnode.processing.selection.models.networks.network import Kind, Network, Step
from tests.processing.selection import toy_detector as toy
from tests.processing.selection.line_evaluators import (
    ALL,
    Case,
    Evaluator,
    assert_all_decide_alike,
    by_compiler,
    by_numpy,
    targets,
)

pytestmark = pytest.mark.timeout(300)
MODELS = Path(__file__).parents[1] / "models"
GOLDEN = MODELS / "networks" / "golden"
TREES = MODELS / "golden" / "xgboost.json"
FEATURES = ("x", "pt", "vertex.z", "hits")

LAYERS = NetworkModel(GOLDEN / "layers.onnx")
RELU = NetworkModel(GOLDEN / "relu.onnx", ("x", "pt", "a", "hits"))
MONOTONE = NetworkModel(FILE, (lambda t: log(t.pt / MeV), "x", "a", lambda t: t.hits / 10))


def network_of(model: LearnedModel) -> Network:
    assert isinstance(model.table, Network)
    return model.table


def wide_network() -> NetworkModel:
    """All kinds of steps, in layers of more values than lanes, and of numbers that no four divide."""
    rng = np.random.default_rng(5)

    def dense(n: int, n_results: int) -> Step:
        weights = rng.normal(0, n**-0.5, (n_results, n)).astype(np.float32)
        return Step(Kind.DENSE, n_results, weights, rng.normal(0, 0.3, n_results).astype(np.float32))

    def constants(n: int) -> Any:
        return rng.uniform(0.5, 2.0, n).astype(np.float32)

    steps = [
        *(Step(Kind.ADD, 4, constants=constants(4)), Step(Kind.DIV, 4, constants=constants(4)), dense(4, 21)),
        *(Step(Kind.GROUP_SORT, 21, group=7), Step(Kind.MUL, 21, constants=constants(21)), dense(21, 35)),
        *(Step(Kind.LEAKY_RELU, 35, constants=np.array([0.1], np.float32)), dense(35, 6), Step(Kind.SIGMOID, 6)),
        *(dense(6, 3), Step(Kind.TANH, 3), Step(Kind.RELU, 3), dense(3, 1)),
        Step(Kind.RESIDUAL, 1, rng.normal(0, 0.2, 4).astype(np.float32)),
    ]
    made = NetworkModel(GOLDEN / "layers.onnx", ("x", "pt", "a", "hits"))
    made._learned = type(made._learned)(Network.of_steps(steps, 4), made._learned.features, slope=1.0)
    return made


WIDE = wide_network()
LINES = (
    Line("Layers", toy.tracks, lambda t: LAYERS(t) > 0.5),
    Line("Relu", toy.tracks, lambda t: (t.hits > 3) & (RELU(t) > 0.6)),
    Line("Monotone", toy.tracks, lambda t: MONOTONE(t) > 0.5),
    Line("Wide", toy.muons, lambda t: WIDE(t) > 0.5),
    Line("Other", toy.event, lambda e: any_of(toy.tracks, lambda t: (t.hits > 10) & (WIDE.raw(t) > 0.2))),
)


def case_of(*lines: Line) -> Case:
    columns = toy.random_events(20, 4, special=0.15)
    tables = {model.column.name: model.words for model in models_of(line.condition for line in lines)}
    return Case(lines, toy.EVENT_WORDS, {**columns, **tables}, toy.limits_of(columns, len(lines)))


@pytest.mark.parametrize("evaluator", ALL)
def test_lines_with_networks_decide_alike_on_every_back_end(evaluator: Evaluator) -> None:
    decided = assert_all_decide_alike(case_of(*LINES), [evaluator])
    for bit, line in enumerate(LINES):
        assert sum(mask >> bit & 1 for mask in decided.masks) > 0, line.name
    assert sum(decided.unknown) > 0, "a NaN among the features leaves the selection unknown, which is counted"


def second_smallest(t: Any) -> Any:
    a, b, c, d = (feature(t) for feature in SORTED)
    inner = maximum(minimum(a, b), minimum(c, d))
    return minimum(inner, maximum(a, b), maximum(c, d))


SORTED: tuple[Callable[[Any], Any], ...] = (lambda t: 0.5 - t.a, lambda t: t.b, lambda t: t.hits / 10, lambda t: t.a)


@pytest.mark.parametrize("evaluator", [by_numpy, *ALL])
def test_a_group_is_sorted_on_every_back_end(evaluator: Evaluator) -> None:
    model = NetworkModel(GOLDEN / "layers.onnx", SORTED)
    second = np.array([[0, 1, 0, 0]], np.float32)
    steps = [Step(Kind.GROUP_SORT, 4, group=4), Step(Kind.DENSE, 1, second, np.zeros(1, np.float32))]
    model._learned = type(model._learned)(Network.of_steps(steps, 4), model._learned.features)
    # Infinite values times the weights of 0 are NaN, and leave both lines undecided.
    lines = (
        Line("Sorted", toy.tracks, lambda t: model.raw(t) == second_smallest(t)),
        Line("Unsorted", toy.tracks, lambda t: model.raw(t) != second_smallest(t)),
    )
    masks = evaluator(case_of(*lines)).masks
    assert sum(mask & 1 for mask in masks) > 10
    assert not any(mask & 2 for mask in masks)


def test_every_instruction_set_decides_alike() -> None:
    case = case_of(*LINES)
    expected = by_numpy(case)
    for target in targets():
        assert by_compiler(case, target) == expected


def test_a_decision_is_that_of_the_response() -> None:
    case = case_of(Line("Relu", toy.tracks, lambda t: (t.hits > 18) & (RELU(t) > 0.6)))
    n, columns = case.limits.events, case.columns
    places = [event * toy.MAX_TRACKS + i for event in range(n) for i in range(int(columns["toy_tracks.count"][event]))]
    x, pt, hits = (columns[f"toy_tracks.{name}"][places].astype(np.float32) for name in ("x", "pt", "hits"))
    inputs = [x, pt, columns["toy_tracks.y"][2 * np.array(places)].astype(np.float32), hits]
    found = responses(network_of(RELU._learned), inputs).astype(np.float64)
    with np.errstate(over="ignore"):
        selected = (hits > 18) & (1.0 / (1.0 + np.exp(-found)) > 0.6)
    events = {place // toy.MAX_TRACKS for place, passed in zip(places, selected, strict=True) if passed}
    assert 0 < len(events) < n
    assert [bool(mask) for mask in by_numpy(case).masks] == [event in events for event in range(n)]


def test_a_network_runs_behind_the_cuts_of_its_line() -> None:
    source = case_of(Line("Costly", toy.tracks, lambda t: (LAYERS(t) > 0.5) & (t.hits > 3))).source
    assert source.index("hlt::networks::response_of<6u>") > source.index("at0.any(")


def test_lines_without_networks_have_the_kernel_of_before() -> None:
    trees = TreeModel(TREES)
    assert "network" not in case_of(Line("Trees", toy.tracks, lambda t: trees(t) > 0.5)).source
    assert "trees" not in case_of(Line("Network", toy.tracks, lambda t: RELU(t) > 0.5)).source


def test_the_network_of_two_track_mva_as_a_file_gives_its_response() -> None:
    model = read_model(FILE)
    rng = np.random.default_rng(3)
    inputs = rng.normal([4, 3, 5, 2], [3, 3, 5, 2], (500, 4)).astype(np.float32)
    expected = []
    for row in inputs.astype(np.float64):
        values = list(row)
        for layer in TWO_TRACK_NETWORK.layers:
            if layer is not TWO_TRACK_NETWORK.layers[0]:
                values = [v for a, b in zip(values[::2], values[1::2], strict=True) for v in sorted((a, b))]
            values = layer.outputs(values)
        rise = sum(row[i] for i in TWO_TRACK_NETWORK.monotone_inputs)
        expected.append(1 / (1 + np.exp(-(values[0] + TWO_TRACK_NETWORK.slope * rise))))
    found = 1 / (1 + np.exp(-responses(network_of(model), list(inputs.T)).astype(np.float64)))
    assert np.ptp(expected) > 0.9
    assert np.abs(found - expected).max() < 1e-5


@pytest.mark.parametrize(
    ("features", "message"),
    [
        (("x", "ptt", "y", "hits"), r"relu\.onnx: feature 'ptt': field 'ptt': tracks have no such field; the nearest"),
        (("x", "vertex", "y", "hits"), r"relu\.onnx: feature 'vertex' is a candidate, expected a number of the"),
        (("x",), r"relu\.onnx: 1 features are given, the model has 4"),
        (("x", lambda t: t.ptt, "y", "hits"), r"relu\.onnx: feature 1: field 'ptt': tracks have no such field"),
        (("x", lambda t: log(t) > 1, "y", "hits"), r"relu\.onnx: feature 1: a line cannot compute with"),
        (("x", lambda _: None, "y", "hits"), r"relu\.onnx: feature 1 is None, expected a number of the"),
        (("x", lambda _: 2.5, "y", "hits"), r"relu\.onnx: feature 1 is 2\.5, expected a number of the"),
        (
            None,
            r"relu\.onnx: the file has no names of its 4 features: NetworkModel\(.*features=.* gives them",
        ),
    ],
)
def test_features_that_no_field_gives_are_refused(features: Any, message: str) -> None:
    with pytest.raises(LineError, match=message):
        Line("L", toy.tracks, lambda t: NetworkModel(GOLDEN / "relu.onnx", features)(t) > 0.5)


def test_a_file_of_the_other_kind_names_the_class_that_takes_it() -> None:
    with pytest.raises(ModelError, match=r"xgboost\.json: decision trees: TreeModel takes it"):
        NetworkModel(TREES)
    with pytest.raises(ModelError, match=r"relu\.onnx: a network: NetworkModel takes it"):
        TreeModel(GOLDEN / "relu.onnx", FEATURES)
    with pytest.raises(ModelError, match="a network: decision trees are expected"):
        _ = read_model(FILE).trees


# --- TCK documents ----------------------------------------------------------------------------------------------------

MINE = """\
from hltnode.processing.lhcb.lines import GeV, Line, NetworkModel, log, long_tracks

model = NetworkModel("model.onnx", features=[lambda t: log(t.ip_chi2), "pt", "pv.z", "eta"])
lines = [Line("Hlt1Mine", long_tracks, lambda t: (t.pt > 1 * GeV) & (model(t) > 0.6))]
"""


def trigger_in(folder: Path, model: str = "relu.onnx", lines: str = MINE) -> Any:
    shutil.copy(GOLDEN / model, folder / "model.onnx")
    (folder / "my_lines.py").write_text(lines)
    (folder / "trigger.toml").write_text('lines = []\nline_files = ["my_lines.py"]\n')
    return CHAIN.load_trigger(folder / "trigger.toml")


def test_a_document_holds_the_network_and_runs_without_its_file(tmp_path: Path) -> None:
    document = CHAIN.document(trigger_in(tmp_path))
    (digest,) = document.content["models"]
    assert digest == RELU._learned.table.digest
    assert any(text.startswith(f"NETWORK {digest} ") for text in document.content["lines"][0]["selection"])
    for name in ("model.onnx", "my_lines.py"):
        (tmp_path / name).unlink()
    again = CHAIN.trigger_of(TckDocument.from_text(document.text))
    assert CHAIN.document(again) == document
    assert again.models == (RELU._learned.table,)
    assert CHAIN.document(trigger_in(tmp_path, "layers.onnx")).tck != document.tck


def test_networks_of_a_document_that_are_damaged_are_refused(tmp_path: Path) -> None:
    document = CHAIN.document(trigger_in(tmp_path))
    ((digest, table),) = document.content["models"].items()
    trees = read_model(TREES).trees

    def refusal(models: object) -> str:
        values = json.loads(document.text)
        values["content"]["models"] = models
        content = values["content"]
        values.update(tck=f"0x{content_key(content):08X}", sha256=content_hash(content).hex())
        with pytest.raises(TriggerConfigError) as error:
            CHAIN.trigger_of(TckDocument.from_text(json.dumps(values)))
        return str(error.value)

    assert "not a table of a model" in refusal({digest: "?"})
    assert "the table ends" in refusal({digest: table[:-24]})
    assert f"its digest is {digest}" in refusal({trees.digest: table})
    assert "there is no such model" in refusal({trees.digest: trees.text})


@pytest.mark.parametrize(
    ("operation", "message"),
    [
        ("NETWORK", "words are missing"),
        ("NETWORK 00 0", "there is no such model"),
        ("TREES {digest} 1 1 1 1", "there is no such model"),
        ("NETWORK {digest} 1 1 1", "4 numbers are expected"),
        ("NETWORK {digest} 0 0 0 0", "4 numbers are expected"),
    ],
)
def test_operations_on_networks_that_no_line_records_are_refused(operation: str, message: str) -> None:
    table = RELU._learned.table
    line = LINES[1]
    reader = Reader(columns_of((line.condition,), (toy.track_count,)), [table])
    content = line.content() | {"selection": ["CONST bool 1", "CONST number 1", operation.format(digest=table.digest)]}
    with pytest.raises(LineError, match=message):
        line_of_content(content, reader)
    assert line_of_content(line.content(), reader).content() == line.content()


def test_an_engine_loads_the_table_of_a_network(tmp_path: Path) -> None:
    shutil.copy(GOLDEN / "relu.onnx", tmp_path / "model.onnx")
    (tmp_path / "my_lines.py").write_text(
        "from hltnode.processing.raw.lines import Line, NetworkModel, banks\n\n"
        'model = NetworkModel("model.onnx", features=["size", "type", "version", "subdetector"])\n'
        'lines = [Line("L", banks, lambda b: model(b) > 0.5)]\n'
    )
    (tmp_path / "trigger.toml").write_text('lines = []\nline_files = ["my_lines.py"]\n')
    backend = create_backend("cpu", RAW.kernels, threads=1)
    engine = RAW.create_engine(backend, {}, RAW.load_trigger(tmp_path / "trigger.toml"), BatchLimits(events=4))
    table = RELU._learned.table
    content = backend.read(engine._constants[table.column.name], table.words.nbytes)
    assert content.view(np.uint32).tolist() == table.words.tolist()
    engine.close()
