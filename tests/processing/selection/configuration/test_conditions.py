"""Conditions: the beam line in a trigger configuration, in its key and in the constants of the detector."""

from __future__ import annotations

import json
from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest

from hltnode.processing.framework.backends.factory import create_backend
from hltnode.processing.framework.limits import BatchLimits
from hltnode.processing.framework.measured_quantities import MeasuredQuantity
from hltnode.processing.lhcb.chain import CHAIN
from hltnode.processing.lhcb.velo.collections import VELO_GEOMETRY, velo_geometry
from hltnode.processing.selection.configuration.conditions import measured_quantities
from hltnode.processing.selection.configuration.tck import TckDocument, differences
from hltnode.processing.selection.configuration.trigger_config import TriggerConfig, content_hash, content_key
from hltnode.processing.selection.errors import TriggerConfigError

BEAM = """
[sequence]
name = "velo"
[conditions]
beam_y = -0.25
beam_x = 1
beam_slope_x = 0.0005
beam_slope_y = -0.001
"""
VALUES = {"x": 1.0, "y": -0.25, "slope_x": 0.0005, "slope_y": -0.001}


def loaded(tmp_path: Path, text: str) -> TriggerConfig:
    path = tmp_path / "trigger.toml"
    path.write_text(text)
    return CHAIN.load_trigger(path)


def test_conditions_replace_their_numbers_of_the_geometry_and_no_others(tmp_path: Path) -> None:
    given = CHAIN.with_sequence("velo").load_geometry(None)
    before = given[velo_geometry.name].copy()
    changed = CHAIN.with_conditions(given, loaded(tmp_path, BEAM))[velo_geometry.name]
    expected = before.copy().view(VELO_GEOMETRY.dtype)
    for name, value in VALUES.items():
        expected[f"beamline_{name}"] = value
    assert changed.tobytes() == expected.tobytes()
    assert np.array_equal(given[velo_geometry.name], before)


def test_one_condition_leaves_the_other_number_to_the_geometry(tmp_path: Path) -> None:
    geometry = np.zeros(1, VELO_GEOMETRY.dtype)
    geometry["beamline_y"] = 0.5
    trigger = loaded(tmp_path, "[conditions]\nbeam_x = 0.125")
    changed = CHAIN.with_conditions({velo_geometry.name: geometry.view(np.uint8)}, trigger)
    record = changed[velo_geometry.name].view(VELO_GEOMETRY.dtype)[0]
    assert (record["beamline_x"], record["beamline_y"]) == (0.125, 0.5)


def test_an_engine_has_the_conditions_of_its_trigger_configuration(tmp_path: Path) -> None:
    trigger = loaded(tmp_path, BEAM)
    chain = CHAIN.with_sequence("velo")
    backend = create_backend("cpu", chain.kernels, threads=1)
    limits = BatchLimits(events=1, input_bytes=1 << 16)
    engine = chain.create_engine(backend, chain.load_geometry(None), trigger, limits, retain="all")
    record = engine.create_workspace().fetch(velo_geometry.name).view(VELO_GEOMETRY.dtype)[0]
    assert {name: record[f"beamline_{name}"] for name in VALUES} == {k: np.float32(v) for k, v in VALUES.items()}
    assert engine.tck == CHAIN.document(trigger).tck
    engine.close()


def test_a_measured_condition_has_its_value_from_the_configuration_or_else_from_the_geometry(tmp_path: Path) -> None:
    trigger = loaded(tmp_path, '[sequence]\nname = "velo"\n[conditions]\nbeam_x = 0.5\n')
    constants = CHAIN.with_conditions(CHAIN.with_sequence("velo").load_geometry(None), trigger)
    found = measured_quantities(constants, CHAIN.conditions, {"beam_x", "beam_y", "pv_x"})
    assert [(each.name, each.histogram, each.configured) for each in found] == [
        ("beam_x", "beam_x", 0.5),
        ("beam_y", "beam_y", 0.0),
    ]
    assert {(each.tolerance, each.low, each.high, each.unit) for each in found} == {(0.05, -3.5, 3.5, "mm")}
    assert [each.name for each in measured_quantities(constants, CHAIN.conditions, {"beam_y"})] == ["beam_y"]
    assert measured_quantities({}, CHAIN.conditions, {"beam_x", "beam_y"}) == ()


@pytest.mark.parametrize("sequence", ["forward", "matching"])
def test_a_sign_is_compared_with_the_entries_of_two_histograms_and_no_run_takes_it(
    tmp_path: Path, sequence: str
) -> None:
    trigger = loaded(tmp_path, f'[sequence]\nname = "{sequence}"\n[conditions]\nmagnet_polarity = 1\n')
    constants = CHAIN.with_conditions(CHAIN.with_sequence(sequence).load_geometry(None), trigger)
    pair = ("long_x_positive", "long_x_negative")
    assert measured_quantities(constants, CHAIN.conditions, pair) == (
        MeasuredQuantity(
            name="magnet_polarity",
            histogram=pair[0],
            opposite=pair[1],
            configured=1.0,
            tolerance=1.0,
            low=-1.0,
            high=1.0,
            unit="",
            follows=False,
        ),
    )
    for one in pair:
        assert measured_quantities(constants, CHAIN.conditions, {one, "has_pv"}) == ()
    assert measured_quantities({}, CHAIN.conditions, pair) == ()


def test_conditions_are_part_of_the_key_and_their_order_is_not(tmp_path: Path) -> None:
    plain = loaded(tmp_path, '[sequence]\nname = "velo"')
    sequence = CHAIN.with_sequence("velo").sequence
    assert set(plain.content(sequence)) == {"lines", "sequence"}
    keys = [
        loaded(tmp_path, f'[sequence]\nname = "velo"\n[conditions]\n{text}').tck(sequence)
        for text in (
            "",
            "beam_x = 1",
            "beam_x = 1.0",
            "beam_x = 1.1",
            "beam_x = 1\nbeam_y = 0",
            "beam_y = 0\nbeam_x = 1",
            "beam_x = 1\nbeam_slope_x = 0.0005",
            "beam_x = 1\nbeam_slope_y = 0.0005",
        )
    ]
    assert keys[0] == plain.tck(sequence)
    assert keys[1] == keys[2]
    assert keys[4] == keys[5]
    assert len(set(keys)) == 6


def test_a_document_holds_the_conditions_and_gives_them_back(tmp_path: Path) -> None:
    document = CHAIN.document(loaded(tmp_path, BEAM))
    assert TckDocument.from_text(document.text) == document
    trigger = CHAIN.trigger_of(document)
    assert dict(trigger.conditions) == {f"beam_{name}": value for name, value in VALUES.items()}
    assert CHAIN.document(trigger) == document
    plain = CHAIN.document(CHAIN.load_trigger(None, "velo"))
    assert differences(plain, document) == {f"conditions.beam_{k}": (None, v) for k, v in VALUES.items()}


def test_a_document_with_a_beam_position_alone_keeps_its_key(tmp_path: Path) -> None:
    """A document of an earlier version has no slopes; its key is that of the same content."""
    document = CHAIN.document(loaded(tmp_path, "[conditions]\nbeam_x = 1\nbeam_y = -0.25"))
    content = json.loads(document.text)["content"]
    assert content["conditions"] == {"beam_x": 1.0, "beam_y": -0.25}
    trigger = CHAIN.trigger_of(document)
    assert CHAIN.document(trigger).tck == document.tck == content_key(content)
    geometry = np.zeros(1, VELO_GEOMETRY.dtype)
    changed = CHAIN.with_conditions({velo_geometry.name: geometry.view(np.uint8)}, trigger)
    assert changed[velo_geometry.name].view(np.float32)[-31:-27].tolist() == [1.0, -0.25, 0.0, 0.0]


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("conditions = 1", "conditions: a table of numbers"),
        ("[conditions]\nbeam_x = true", r"conditions\.beam_x: a finite number is expected, not True"),
        ('[conditions]\nbeam_x = "1"', r"conditions\.beam_x: a finite number is expected, not '1'"),
        ("[conditions]\nbeam_x = nan", r"conditions\.beam_x: a finite number is expected, not nan"),
        (f"[conditions]\nbeam_x = {10**400}", r"conditions\.beam_x: a finite number is expected, not 1000"),
        ("[conditions]\nbeam_xx = 1", r"conditions\.beam_xx: unknown condition; the nearest are beam_x, beam_y"),
        ("[conditions]\nbeam_x = 3.6", r"conditions\.beam_x: 3\.6 mm, expected -3\.5 to 3\.5"),
        ("[conditions]\nbeam_y = -3.6", r"conditions\.beam_y: -3\.6 mm, expected -3\.5 to 3\.5"),
        ("[conditions]\nbeam_slope_x = 0.0041", r"conditions\.beam_slope_x: 0\.0041, expected -0\.004 to 0\.004"),
        ("[conditions]\nbeam_slope_y = -1", r"conditions\.beam_slope_y: -1, expected -0\.004 to 0\.004"),
        ("[conditions]\nbeam_slope_y = nan", r"conditions\.beam_slope_y: a finite number is expected, not nan"),
        ("[conditions]\nbeam_slope = 0", r"conditions\.beam_slope: unknown condition; the nearest are beam_slope_"),
    ],
)
def test_an_invalid_condition_is_refused_with_file_and_key(tmp_path: Path, text: str, message: str) -> None:
    with pytest.raises(TriggerConfigError, match=rf"trigger\.toml: {message}"):
        loaded(tmp_path, text)


def test_a_chain_without_conditions_refuses_them(tmp_path: Path) -> None:
    path = tmp_path / "trigger.toml"
    path.write_text("[conditions]\nbeam_x = 1")
    with pytest.raises(TriggerConfigError, match=r"beam_x: unknown condition; this chain has none"):
        replace(CHAIN, conditions=()).load_trigger(path)


@pytest.mark.parametrize(
    ("conditions", "message"),
    [
        ([], "wrong type"),
        ({}, "reproduced"),
        ({"beam_x": "1"}, "a finite number"),
        ({"beam_x": 1}, "reproduced"),
        ({"beam_slope_y": float("nan")}, r"conditions\.beam_slope_y: a finite number is expected, not nan"),
        ({"beam_slope_x": 0.1}, r"conditions\.beam_slope_x: 0\.1, expected"),
    ],
)
def test_a_document_with_invalid_conditions_is_refused(tmp_path: Path, conditions: object, message: str) -> None:
    document = CHAIN.document(CHAIN.load_trigger(None, "velo"))
    values = json.loads(document.text)
    content = {**values["content"], "conditions": conditions}
    values.update(content=content, tck=f"0x{content_key(content):08X}", sha256=content_hash(content).hex())
    path = tmp_path / "trigger.json"
    path.write_text(json.dumps(values))
    with pytest.raises(TriggerConfigError, match=message):
        CHAIN.load_trigger(path)
