"""Folders of conditions: the choice by run number, and refusals that name the file and the key."""

from __future__ import annotations

import tomllib
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from hltnode.processing.lhcb.chain import CHAIN
from hltnode.processing.selection.configuration.conditions_folder import MAX_RUN, ConditionsFolder
from hltnode.processing.selection.errors import ConditionsError
from hltnode.processing.selection.run_conditions import RunConditions
from hltnode.protocol.event_table import EventTable
from hltnode.protocol.raw_data.bank_types import BankType
from hltnode.protocol.raw_data.odin import Odin, encode_odin
from hltnode.protocol.raw_data.raw_bank import RawBank

DOWN = "magnet_polarity = -1\nvelo_opening = 0"
BEAM = "beam_x = 0.5\nbeam_y = -0.25"
INDEX = """format = 1
chain = "lhcb"
version = "2026-11"
[[runs]]
first = 30
files = ["down.toml", "late.toml"]
[[runs]]
first = 10
last = 19
files = ["down.toml", "early.toml"]
"""


def written(path: Path, index: str = INDEX, **files: str) -> Path:
    (path / "conditions.toml").write_text(index)
    for name, text in ({"down": DOWN, "early": BEAM, "late": "beam_x = 0\nbeam_y = 0"} | files).items():
        (path / f"{name}.toml").write_text(text)
    return path


def load(path: Path) -> ConditionsFolder:
    return ConditionsFolder.load(path, "lhcb", CHAIN.conditions)


def test_a_run_has_the_conditions_of_its_interval_and_a_run_outside_is_refused_by_name(tmp_path: Path) -> None:
    folder = load(written(tmp_path, spare="beam_x = 0"))
    early = {"beam_x": 0.5, "beam_y": -0.25, "magnet_polarity": -1.0, "velo_opening": 0.0}
    assert [(i.first, i.last, i.files) for i in folder.intervals] == [
        (10, 19, ("down.toml", "early.toml")),
        (30, MAX_RUN, ("down.toml", "late.toml")),
    ]
    assert [dict(folder.values_of(run)) for run in (10, 19)] == [early, early]
    assert [dict(folder.values_of(run))["beam_x"] for run in (30, MAX_RUN)] == [0.0, 0.0]
    assert folder.unused == ("spare.toml",)
    for run, text in ((9, "the next one has runs 10 to 19"), (29, "before it has runs 10 to 19; the next one has")):
        with pytest.raises(ConditionsError, match=rf"run {run} has no conditions in .*2026-11.*{text}"):
            folder.values_of(run)


def test_the_digest_changes_with_each_file_and_not_with_unused_ones(tmp_path: Path) -> None:
    digests = {load(written(tmp_path)).digest}
    digests.add(load(written(tmp_path, spare="beam_x = 1")).digest)
    assert len(digests) == 1
    digests.add(load(written(tmp_path, late="beam_x = 0\nbeam_y = 0.0")).digest)
    digests.add(load(written(tmp_path, INDEX.replace("30", "31"))).digest)
    assert len(digests) == 3


@pytest.mark.parametrize(
    ("old", "new", "message"),
    [
        ("format = 1", "format = 2", r"conditions.toml: format: 2, expected 1"),
        ("format = 1", "format = true", r"format: True, expected 1"),
        ("format = 1\n", "", r"format: missing"),
        ("format = 1\n", f"format = 0x{'f' * 5000}\n", r"format: <int instance at|ValueError: "),
        ("first = 10", f"first = 0x{'f' * 5000}", r"first: <int instance at|ValueError: "),
        ('"lhcb"', '"raw"', r"chain: conditions of raw, expected those of 'lhcb'"),
        ('"2026-11"', '""', r"version: '', expected a text"),
        ("[[runs]]\nfirst = 30", "[[rums]]\nfirst = 30", r"rums: unknown key; there are chain, format, runs, version"),
        ("last = 19", "last = 9", r"runs\[1\]: last: run 9 is before the first, 10"),
        ("last = 19", "last = 30", r"runs 10 to 30 and runs 30 and later overlap"),
        ("last = 19", "last = 4294967296", r"last: 4294967296, expected a run number"),
        ("last = 19", "lost = 19", r"runs\[1\]: lost: unknown key"),
        ("first = 10", "first = -1", r"first: -1, expected a run number"),
        ('"early.toml"', '"../early.toml"', r"'../early.toml', expected the name of a TOML file of the folder"),
        ('"early.toml"', '"conditions.toml"', r"'conditions.toml', expected the name"),
        ('"early.toml"', '"none.toml"', r"none.toml: cannot be read: No such file"),
        ('"early.toml"', '"late.toml", "early.toml"', r"late.toml and early.toml both set beam_x"),
        ('["down.toml", "early.toml"]', "[]", r"files: expected a list of files"),
        ('"down.toml", "early.toml"', '"early.toml"', r"magnet_polarity, velo_opening missing in early.toml"),
    ],
)
def test_an_invalid_index_is_refused_with_the_key(tmp_path: Path, old: str, new: str, message: str) -> None:
    assert old in INDEX
    written(tmp_path, INDEX.replace(old, new, 1) if old != '"early.toml"' else INDEX.replace(old, new))
    with pytest.raises(ConditionsError, match=message):
        load(tmp_path)


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("beam_x = ", r"early.toml: not a TOML file"),
        ("beam_z = 1", r"early.toml: beam_z: unknown condition; the nearest are"),
        ("beam_x = 3.6", r"early.toml: beam_x: 3.6 mm, expected -3.5 to 3.5"),
        ("beam_x = nan", r"beam_x: a finite number is expected, not nan"),
        ("beam_x = [1]", r"beam_x: a list, expected a number"),
        ("magnet_polarity = 0", r"magnet_polarity: 0, expected -1 or 1"),
        ("velo_opening = -1", r"velo_opening: -1 mm, expected 0 to 60"),
        ("masked_ut_lanes = 3", r"masked_ut_lanes: 3, expected a list of integers"),
        ("masked_ut_lanes = [1.5]", r"masked_ut_lanes: 1.5 is not an integer"),
        ("masked_ut_lanes = [true]", r"masked_ut_lanes: True is not an integer"),
        ("masked_ut_lanes = [2, 2]", r"masked_ut_lanes: 2 after 2, expected ascending numbers"),
        ("masked_ut_lanes = [1440]", r"masked_ut_lanes: 1440, expected 0 to 1439"),
    ],
)
def test_an_invalid_condition_is_refused_with_its_file(tmp_path: Path, text: str, message: str) -> None:
    with pytest.raises(ConditionsError, match=message):
        load(written(tmp_path, early=text))


def test_a_folder_that_is_missing_or_no_text_is_refused(tmp_path: Path) -> None:
    with pytest.raises(ConditionsError, match="no such folder of conditions"):
        load(tmp_path / "none")
    written(tmp_path)
    (tmp_path / "early.toml").write_bytes(b"\xff\xfe")
    with pytest.raises(ConditionsError, match=r"early\.toml: not a TOML file"):
        load(tmp_path)


@given(st.data())
def test_any_file_gives_conditions_or_a_named_refusal(
    tmp_path_factory: pytest.TempPathFactory, data: st.DataObject
) -> None:
    path = written(tmp_path_factory.mktemp("conditions"))
    name = data.draw(st.sampled_from(("conditions", "early")))
    file = path / f"{name}.toml"
    text = bytearray(file.read_bytes())
    for _ in range(data.draw(st.integers(1, 4))):
        at = data.draw(st.integers(0, len(text) - 1))
        text[at : at + data.draw(st.integers(0, 3))] = data.draw(st.binary(max_size=4))
    file.write_bytes(bytes(text))
    refused: str | None = None
    try:
        tomllib.loads(file.read_text())
        assert load(path).digest
    except ConditionsError as error:
        refused = str(error)
    except ValueError:
        with pytest.raises(ConditionsError, match="not a TOML file"):
            load(path)
    assert refused is None or str(path) in refused


class KeyOnly:
    """The part of an engine that a change of conditions uses."""

    tck = 0

    def replace_constants(self, _constants: object, _measured: object, tck: int) -> None:
        self.tck = tck


def test_events_of_files_are_divided_where_the_run_changes(tmp_path: Path) -> None:
    def event(run: int | None, number: int) -> list[RawBank]:
        if run is None:
            return [RawBank(int(BankType.ODIN), 0, 0, memoryview(b"\0"))]
        return [encode_odin(Odin(run=run, event_id=number))]

    runs = [None, 12, 12, None, 31, 31, 12]
    table = EventTable.of_events([event(run, number) for number, run in enumerate(runs)])
    chain = CHAIN.with_sequence("velo")
    trigger = CHAIN.load_trigger(None, "velo")
    engine = KeyOnly()
    conditions = RunConditions.load(CHAIN, chain.load_geometry(None), trigger, written(tmp_path))
    pieces = conditions.in_runs(engine, [table[:2], table[2:]])  # type: ignore[arg-type]
    found = [(engine.tck, sum(len(part) for part in piece)) for piece in pieces]
    tck = {run: document.tck for run, document in conditions.documents.items()}
    assert found == [(0, 1), (tck[12], 3), (tck[31], 2), (tck[12], 1)]
    assert tck[12] != tck[31]
    assert conditions.documents[12].content["conditions"] == {"beam_x": 0.5, "beam_y": -0.25, "velo_opening": 0.0}
    refused = conditions.in_runs(engine, [EventTable.of_events([event(25, 0)])])  # type: ignore[arg-type]
    with pytest.raises(ConditionsError, match="run 25 has no conditions"):
        next(refused)


def test_a_trigger_configuration_with_conditions_is_refused_beside_a_folder(tmp_path: Path) -> None:
    path = tmp_path / "trigger.toml"
    path.write_text('[sequence]\nname = "velo"\n[conditions]\nbeam_x = 1\n')
    chain = CHAIN.with_sequence("velo")
    with pytest.raises(ConditionsError, match=r"conditions\.beam_x: the trigger configuration and the folder"):
        RunConditions.load(CHAIN, chain.load_geometry(None), CHAIN.load_trigger(path), written(tmp_path))
