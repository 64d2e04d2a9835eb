"""Model files in lines: decisions on every back end, features that are no fields, and TCK documents with the model."""

from __future__ import annotations

import json
import shutil
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from hltnode.processing.framework.backends.factory import create_backend
from hltnode.processing.framework.limits import BatchLimits
from hltnode.processing.lhcb.chain import CHAIN
from hltnode.processing.raw.chain import CHAIN as RAW
from hltnode.processing.selection.configuration.tck import TckDocument, differences
from hltnode.processing.selection.configuration.trigger_config import content_hash, content_key
from hltnode.processing.selection.errors import LineError, ModelError, TriggerConfigError
from hltnode.processing.selection.expressions.canonical import Reader
from hltnode.processing.selection.expressions.nodes import columns_of, models_of
from hltnode.processing.selection.lines.inputs import any_of
from hltnode.processing.selection.lines.learned_models import TreeModel
from hltnode.processing.selection.lines.line import Line, line_of_content
from hltnode.processing.selection.models.ensemble import BinaryTree, Ensemble, ObliviousTree, Split
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
GOLDEN = Path(__file__).parents[1] / "models" / "golden"
XGBOOST = TreeModel(GOLDEN / "xgboost.json")
CATBOOST = TreeModel(GOLDEN / "catboost.json")
EVENTS = TreeModel(GOLDEN / "catboost.json", features=("n", "type", "number", "n"))


def with_column_content(case: Case) -> Case:
    """The case with the tables of its models, which an engine fills in."""
    tables = {trees.column.name: trees.words for trees in models_of(line.condition for line in case.lines)}
    return Case(case.lines, case.event_words, {**case.columns, **tables}, case.limits, case.histograms)


def case_of(*lines: Line) -> Case:
    columns = toy.random_events(20, 4, special=0.15)
    return with_column_content(Case(lines, toy.EVENT_WORDS, columns, toy.limits_of(columns, len(lines))))


LINES = (
    Line("Binary", toy.tracks, lambda t: XGBOOST(t) > 0.6),
    Line("Oblivious", toy.muons, lambda t: (t.hits > 3) & (CATBOOST(t) > 0.5)),
    Line("Sum", toy.tracks, lambda t: XGBOOST.raw(t) + CATBOOST.raw(t) > 0.25),
    Line("Other", toy.event, lambda e: any_of(toy.tracks, lambda t: (t.hits > 18) & (XGBOOST(t) > 0.7))),
    Line("Event", toy.event, lambda e: EVENTS(e) > 0.5),
)


@pytest.mark.parametrize("evaluator", ALL)
def test_lines_with_models_decide_alike_on_every_back_end(evaluator: Evaluator) -> None:
    decided = assert_all_decide_alike(case_of(*LINES), [evaluator])
    for bit in range(4):
        passed = sum(mask >> bit & 1 for mask in decided.masks)
        assert passed > 0, LINES[bit].name
    assert sum(decided.unknown) == 0, "a NaN goes the way of the library"


def test_every_instruction_set_decides_alike() -> None:
    case = case_of(*LINES)
    expected = by_numpy(case)
    for target in targets():
        assert by_compiler(case, target) == expected


def test_a_decision_is_that_of_the_response() -> None:
    case = case_of(LINES[0])
    n, columns = case.limits.events, case.columns
    places = [event * toy.MAX_TRACKS + i for event in range(n) for i in range(int(columns["toy_tracks.count"][event]))]
    vertex = np.asarray(columns["toy_tracks.vertex"])
    z = []
    for place in places:
        event = place // toy.MAX_TRACKS
        has = vertex[place] < columns["toy_vertices.count"][event]
        z.append(columns["toy_vertices.z"][event * toy.MAX_VERTICES + vertex[place]] if has else np.nan)
    inputs = [columns[f"toy_tracks.{name}"][places].astype(np.float32) for name in ("x", "pt")]
    inputs += [np.array(z, np.float32), columns["toy_tracks.hits"][places].astype(np.float32)]
    sums = XGBOOST._learned.trees.sums(inputs).astype(np.float64)
    selected = 1.0 / (1.0 + np.exp(-sums)) > 0.6
    events = {place // toy.MAX_TRACKS for place, passed in zip(places, selected, strict=True) if passed}
    assert [bool(mask) for mask in by_numpy(case).masks] == [event in events for event in range(n)]


def test_a_costly_model_runs_behind_the_cuts_of_its_line() -> None:
    trees = [BinaryTree([Split(0, 0.5, False), 1.0, 2.0], [(1, 2), (0, 0), (0, 0)])] * 40
    model = TreeModel(GOLDEN / "xgboost.json")
    model._learned = type(model._learned)(Ensemble.of_trees(trees, 1, 0.0), ("x",))
    model.features = ("x",)
    source = case_of(Line("Costly", toy.tracks, lambda t: (model(t) > 50) & (t.hits > 3))).source
    assert source.index("hlt::trees::sum_of") > source.index("at0.any(")
    cheap = case_of(Line("Cheap", toy.tracks, lambda t: (XGBOOST(t) > 0.5) & (t.hits > 3))).source
    assert "at0.any(" not in cheap[: cheap.index("hlt::trees::sum_of")]


def test_lines_without_models_have_the_kernel_of_before() -> None:
    source = case_of(Line("Plain", toy.tracks, lambda t: t.hits > 3)).source
    assert "trees" not in source


@pytest.mark.parametrize(
    ("features", "message"),
    [
        (("x", "ptt", "a", "b"), r"xgboost\.json: feature 'ptt': field 'ptt': tracks have no such field; the nearest"),
        (("x", "vertex", "a", "b"), r"xgboost\.json: feature 'vertex' is a candidate, expected a number of the"),
        (("x", "pt.z", "a", "b"), r"xgboost\.json: feature 'pt\.z': 'Expression' object has no attribute 'z'"),
        (("x",), r"xgboost\.json: 1 features are given, the model has 4"),
    ],
)
def test_features_that_no_field_gives_are_refused(features: tuple[str, ...], message: str) -> None:
    with pytest.raises(LineError, match=message):
        Line("L", toy.tracks, lambda t: TreeModel(GOLDEN / "xgboost.json", features)(t) > 0.5)


def test_a_model_takes_a_candidate() -> None:
    with pytest.raises(LineError, match=r"xgboost\.json: a model takes a candidate, not 3"):
        Line("L", toy.tracks, lambda t: XGBOOST(3) > 0.5)


def test_a_condition_as_feature_is_one_or_zero() -> None:
    line = Line("L", toy.tracks, lambda t: TreeModel(GOLDEN / "catboost.json", ("is_muon", "a", "b", "x"))(t) > 0.5)
    assert {"toy_tracks.muon", "toy_tracks.y", "toy_tracks.x"} <= {column.name for column in line.columns}


# --- TCK documents ----------------------------------------------------------------------------------------------------

MINE = """\
from hltnode.processing.lhcb.lines import GeV, Line, TreeModel, long_tracks

model = TreeModel("model.json", features=["ip_chi2", "pt", "pv.z", "eta"])
lines = [Line("Hlt1Mine", long_tracks, lambda t: (t.pt > 1 * GeV) & (model(t) > 0.6))]
"""


def trigger_in(folder: Path, model: str = "xgboost.json", lines: str = MINE) -> Any:
    shutil.copy(GOLDEN / model, folder / "model.json")
    (folder / "my_lines.py").write_text(lines)
    (folder / "trigger.toml").write_text('lines = []\nline_files = ["my_lines.py"]\n')
    return CHAIN.load_trigger(folder / "trigger.toml")


def test_a_document_holds_the_model_and_runs_without_its_file(tmp_path: Path) -> None:
    document = CHAIN.document(trigger_in(tmp_path))
    (digest,) = document.content["models"]
    assert digest == XGBOOST._learned.trees.digest
    assert any(text.startswith(f"TREES {digest} ") for text in document.content["lines"][0]["selection"])
    for name in ("model.json", "my_lines.py"):
        (tmp_path / name).unlink()
    again = CHAIN.trigger_of(TckDocument.from_text(document.text))
    assert CHAIN.document(again) == document
    assert again.models == (XGBOOST._learned.trees,)


def test_another_model_changes_the_key_and_no_model_leaves_no_trace(tmp_path: Path) -> None:
    first, second = CHAIN.document(trigger_in(tmp_path)), CHAIN.document(trigger_in(tmp_path, "catboost.json"))
    assert first.tck != second.tck
    assert f"models.{XGBOOST._learned.trees.digest}" in differences(first, second)
    assert "models" not in CHAIN.document(CHAIN.load_trigger(None)).content


def refusal(document: TckDocument, models: object) -> str:
    values = json.loads(document.text)
    values["content"]["models"] = models
    content = values["content"]
    values.update(tck=f"0x{content_key(content):08X}", sha256=content_hash(content).hex())
    with pytest.raises(TriggerConfigError) as error:
        CHAIN.trigger_of(TckDocument.from_text(json.dumps(values)))
    return str(error.value)


def test_models_of_a_document_that_are_damaged_are_refused(tmp_path: Path) -> None:
    document = CHAIN.document(trigger_in(tmp_path))
    ((digest, table),) = document.content["models"].items()
    other = Ensemble.of_trees([ObliviousTree((), [1.0])], 4, 0.0)
    assert "a field of the TCK document has a wrong type" in refusal(document, [table])
    assert "a field of the TCK document has a wrong type" in refusal(document, {digest: 1})
    assert "there is no such model" in refusal(document, {})
    assert f"its digest is {other.digest}" in refusal(document, {digest: other.text})
    assert "not a table of a model" in refusal(document, {digest: "?"})
    assert "cannot be reproduced" in refusal(document, {digest: table, other.digest: other.text})


@pytest.mark.parametrize(
    ("operation", "message"),
    [
        ("TREES", "words are missing"),
        ("TREES 00 0", "there is no such model"),
        ("TREES {digest} 1 1 1", "4 numbers are expected"),
        ("TREES {digest} 0 0 0 0", "4 numbers are expected"),
    ],
)
def test_operations_on_models_that_no_line_records_are_refused(operation: str, message: str) -> None:
    trees = XGBOOST._learned.trees
    reader = Reader(columns_of((LINES[0].condition,), (toy.track_count,)), [trees])
    content = LINES[0].content() | {
        "selection": ["CONST bool 1", "CONST number 1", operation.format(digest=trees.digest)]
    }
    with pytest.raises(LineError, match=message):
        line_of_content(content, reader)
    assert line_of_content(LINES[0].content(), reader).content() == LINES[0].content()


def test_an_error_of_a_model_file_names_trigger_line_file_and_model(tmp_path: Path) -> None:
    with pytest.raises(
        TriggerConfigError, match=r"trigger\.toml: line_files\[0\]: .*my_lines\.py: .*none\.json: cannot"
    ):
        trigger_in(tmp_path, lines=MINE.replace("model.json", "none.json"))
    with pytest.raises(TriggerConfigError, match=r"model\.json: feature 'ip_chi': field 'ip_chi': long tracks have no"):
        trigger_in(tmp_path, lines=MINE.replace("ip_chi2", "ip_chi"))


OF_BANKS = """\
from hltnode.processing.raw.lines import Histogram, Line, TreeModel, banks

model = TreeModel("model.json", features=["size", "type", "version", "subdetector"])
"""
IN_A_LINE = OF_BANKS + 'lines = [Line("L", banks, lambda b: model(b) > 0.5)]\n'
IN_A_HISTOGRAM = (
    OF_BANKS
    + """\
lines = [Line("L", banks, lambda b: b.size > 3)]
histograms = [Histogram("h", lambda b: model(b), 10, 0, 1, of=banks)]
"""
)


@pytest.mark.parametrize("lines", [IN_A_LINE, IN_A_HISTOGRAM], ids=["line", "histogram"])
def test_an_engine_loads_the_tables_of_its_lines_and_histograms(tmp_path: Path, lines: str) -> None:
    shutil.copy(GOLDEN / "catboost.json", tmp_path / "model.json")
    (tmp_path / "my_lines.py").write_text(lines)
    (tmp_path / "trigger.toml").write_text('lines = []\nline_files = ["my_lines.py"]\n')
    backend = create_backend("cpu", RAW.kernels, threads=1)
    engine = RAW.create_engine(backend, {}, RAW.load_trigger(tmp_path / "trigger.toml"), BatchLimits(events=4))
    trees = CATBOOST._learned.trees
    assert trees.column.name in {column.name for column in engine.plan.constants}
    content = backend.read(engine._constants[trees.column.name], trees.words.nbytes)
    assert content.view(np.uint32).tolist() == trees.words.tolist()
    engine.close()


def test_a_missing_model_is_an_error_of_models() -> None:
    with pytest.raises(ModelError, match=r"none\.json: cannot be read"):
        TreeModel("none.json")
