"""Muon identification by a configured model file: decisions, the document, and what is refused."""

from __future__ import annotations

import json
from functools import cache
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from hltnode.processing.framework.backends.factory import create_backend
from hltnode.processing.framework.limits import BatchLimits
from hltnode.processing.framework.offline_runner import OfflineRunner, encode_meps
from hltnode.processing.lhcb.chain import CHAIN
from hltnode.processing.lhcb.lines.inputs.track_fields import MODEL_FIELDS
from hltnode.processing.lhcb.lines.line_types.two_track_network import FILE as NETWORK
from hltnode.processing.lhcb.muon.collections import FEATURES, long_muon_features
from hltnode.processing.lhcb.tracks.long.collections import long_count, long_tracks
from hltnode.processing.selection.configuration.tck import TckDocument
from hltnode.processing.selection.configuration.trigger_config import TriggerConfig
from hltnode.processing.selection.errors import LineError, TriggerConfigError
from hltnode.processing.selection.models.model_file import read_model
from tests.processing.lhcb.muon.muon_samples import simulated_events

LINES = """
from hltnode.processing.lhcb.lines import Line, long_tracks

lines = [Line("Hlt1TreeMuon", long_tracks, lambda t: t.muon_catboost > {cut})]
"""
LINE_OF_EACH_CUT = """
from hltnode.processing.lhcb.lines import Line, long_tracks

def above(cut):
    return Line(f"Hlt1TreeMuon{{cut}}", long_tracks, lambda t: t.muon_catboost > cut)

lines = [above(cut) for cut in {cuts}]
"""
CUTS = range(16)
"""The largest sums of the simulated events are among them."""
TRIGGER = 'line_files = ["lines.py"]\n[sequence]\nname = "{sequence}"\n[models]\nmuon_catboost = "{model}"\n'
LIMITS = BatchLimits(events=16, input_bytes=8 << 20)


def model(n_features: int = len(FEATURES)) -> dict[str, Any]:
    """A file as CatBoost writes it, of 30 random trees; each feature is in some split."""
    rng = np.random.default_rng(3)
    features = [{"feature_index": i, "flat_feature_index": i, "nan_value_treatment": "AsIs"} for i in range(n_features)]
    trees = [
        {
            "splits": [
                {
                    "split_type": "FloatFeature",
                    "float_feature_index": (4 * tree + k) % n_features,
                    "border": 1.5 if 8 <= (4 * tree + k) % n_features < 12 else float(rng.normal()),
                }
                for k in range(4)
            ],
            "leaf_values": rng.normal(size=16).tolist(),
        }
        for tree in range(30)
    ]
    loss = {"params": {"loss_function": {"type": "Logloss"}}}
    return {"features_info": {"float_features": features}, "oblivious_trees": trees, "model_info": loss}


def written(
    folder: Path, content: object, cut: float = 0.0, sequence: str = "hlt1_2026", name: str = "muons.json"
) -> Path:
    """The trigger configuration with a line by the trees of a file of this content."""
    (folder / "muons.json").write_text(content if isinstance(content, str) else json.dumps(content))
    (folder / "lines.py").write_text(LINES.format(cut=cut))
    path = folder / "trigger.toml"
    path.write_text(TRIGGER.format(sequence=sequence, model=name))
    return path


@cache
def decisions(trigger: TriggerConfig) -> tuple[np.ndarray, list[np.ndarray]]:
    """Of each simulated event: whether each line by trees selects it, and the features of its long tracks."""
    chain = CHAIN.with_sequence(trigger.sequence)
    engine = CHAIN.create_engine(
        create_backend("cpu", chain.kernels, threads=1, device=0),
        chain.load_geometry(None),
        trigger,
        LIMITS,
        retain=(long_muon_features.name, long_count.name),
    )
    places = [i for i, name in enumerate(trigger.line_names) if name.startswith("Hlt1TreeMuon")]
    selected: list[list[bool]] = []
    features = []
    for batch in OfflineRunner(engine).run(encode_meps(engine.chain, simulated_events(6), 6)):
        workspace = batch.workspace
        counts = workspace.fetch(long_count.name, workspace.n_events)
        values = workspace.fetch(long_muon_features.name).reshape(-1, len(FEATURES))
        for first, n in zip(workspace.first(long_tracks), counts, strict=True):
            features.append(values[first : first + n].copy())
        words = workspace.output.lines
        selected += [[bool(row[place // 32] >> place % 32 & 1) for place in places] for row in words]
    engine.close()
    return np.array(selected), features


def test_a_line_selects_by_the_sums_of_the_configured_trees(tmp_path: Path) -> None:
    path = written(tmp_path, model())
    (tmp_path / "lines.py").write_text(LINE_OF_EACH_CUT.format(cuts=list(CUTS)))
    trees = read_model(tmp_path / "muons.json").trees
    selected, features = decisions(CHAIN.load_trigger(path))
    best = np.array([trees.sums(list(np.ascontiguousarray(of.T))).max(initial=-99.0) for of in features])
    assert len(features) == 6
    assert (selected == (best[:, np.newaxis] > np.array(CUTS))).all()
    assert len({tuple(of_line) for of_line in selected.T if 0 < of_line.sum() < 6}) > 1


def test_a_document_contains_the_trees_and_runs_without_their_file(tmp_path: Path) -> None:
    trigger = CHAIN.load_trigger(written(tmp_path, model()))
    document = CHAIN.document(trigger)
    assert list(document.content["models"]) == [read_model(tmp_path / "muons.json").trees.digest]
    (tmp_path / "muons.json").unlink()
    again = CHAIN.trigger_of(TckDocument.from_text(document.text))
    assert CHAIN.document(again).tck == document.tck
    other = model()
    other["oblivious_trees"][7]["leaf_values"][3] += 0.5
    assert CHAIN.document(CHAIN.load_trigger(written(tmp_path, other))).tck != document.tck


def test_a_line_by_trees_is_recorded_again_with_another_parameter(tmp_path: Path) -> None:
    path = written(tmp_path, model())
    (tmp_path / "lines.py").write_text(LINES.format(cut="cut").replace("lambda t", "lambda t, cut=0.0"))
    trigger = CHAIN.load_trigger(path)
    found = trigger.with_cut("Hlt1TreeMuon", "cut", 1.5)
    (tmp_path / "lines.py").write_text(LINES.format(cut=1.5))
    again = CHAIN.load_trigger(path)
    assert found.condition is again.lines[again.line_names.index("Hlt1TreeMuon")].condition


def test_a_line_by_trees_without_a_configured_file_is_refused_by_name(tmp_path: Path) -> None:
    path = written(tmp_path, model())
    path.write_text(path.read_text().partition("[models]")[0])
    with pytest.raises(
        TriggerConfigError, match=r"line Hlt1TreeMuon: field 'muon_catboost': no model file is configured"
    ):
        CHAIN.load_trigger(path)
    assert set(MODEL_FIELDS) == {"muon_catboost"}


def test_a_sequence_without_the_features_refuses_the_line(tmp_path: Path) -> None:
    with pytest.raises(LineError, match=r"Hlt1TreeMuon: it reads long_tracks\.muon_features"):
        CHAIN.load_trigger(written(tmp_path, model(), sequence="forward_then_matching"))


def test_damaged_model_files_are_refused_with_key_file_and_fault(tmp_path: Path) -> None:
    nan, late = model(), model()
    nan["oblivious_trees"][2]["leaf_values"][0] = float("nan")
    late["oblivious_trees"][2]["splits"][1]["float_feature_index"] = 20
    for content, message in (
        ("{", "not a model file"),
        ("[1]", "a JSON object is expected"),
        (json.dumps(model())[:-300], "not a model file"),
        (nan, "nan is not a finite number"),
        (late, "a split uses feature 20, the model has 20"),
        (model(19), "its trees take 19 features, the field has 20"),
        (NETWORK.read_text(), "a network: the field takes decision trees"),
    ):
        with pytest.raises(TriggerConfigError, match=rf"toml: models\.muon_catboost: .*muons\.json: .*{message}"):
            CHAIN.load_trigger(written(tmp_path, content))
    with pytest.raises(TriggerConfigError, match=r"models\.muon_catboost: .*other\.json: cannot be read"):
        CHAIN.load_trigger(written(tmp_path, model(), name="other.json"))


@pytest.mark.parametrize(
    ("models", "message"),
    [
        ("models = 5\n", "models: a table of fields with their model files is expected"),
        ("[models]\nmuon_catboost = 5\n", "models.muon_catboost: the name of a model file is expected, not 5"),
        ('[models]\nmuon_trees = "a.json"\n', "models.muon_trees: no such field takes a model file; there are muon"),
    ],
)
def test_a_table_of_models_with_other_keys_or_values_is_refused(tmp_path: Path, models: str, message: str) -> None:
    path = tmp_path / "trigger.toml"
    path.write_text(models)
    with pytest.raises(TriggerConfigError, match=message):
        CHAIN.load_trigger(path)


def test_the_public_model_gives_the_sums_of_catboost_for_simulated_tracks(shared: Path, tmp_path: Path) -> None:
    catboost = pytest.importorskip("catboost", reason="catboost is not installed")
    path = shared / "data" / "lhcb-parameters" / "muon_catboost_model.json"
    _, features = decisions(CHAIN.load_trigger(written(tmp_path, model())))
    inputs = np.concatenate(features)
    library = catboost.CatBoost({"thread_count": 1})
    library.load_model(str(path), format="json")
    expected = library.predict(inputs, prediction_type="RawFormulaVal")
    found = read_model(path).trees.sums(list(np.ascontiguousarray(inputs.T)))
    assert len(expected) > 100
    np.testing.assert_allclose(found, expected, atol=1e-5)
