"""A trigger configuration with other values of its conditions, for the runs that come."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest

from hltnode.processing.framework.backends.factory import create_backend
from hltnode.processing.framework.limits import BatchLimits
from hltnode.processing.lhcb.chain import CHAIN
from hltnode.processing.lhcb.velo.collections import VELO_GEOMETRY, velo_geometry
from hltnode.processing.selection.configuration.tck import TckDocument
from hltnode.processing.selection.errors import TriggerConfigError
from hltnode.processing.selection.followed_conditions import FollowedConditions


def followed(tmp_path: Path, conditions: str = "") -> FollowedConditions:
    path = tmp_path / "trigger.toml"
    path.write_text(f'[sequence]\nname = "velo"\n{conditions}')
    trigger = CHAIN.load_trigger(path)
    return FollowedConditions(CHAIN, CHAIN.with_sequence("velo").load_geometry(None), trigger)


def test_without_other_values_the_configuration_is_the_given_one(tmp_path: Path) -> None:
    prepared = followed(tmp_path).configured
    assert prepared.document == CHAIN.document(CHAIN.load_trigger(None, "velo"))
    assert [(each.name, each.configured) for each in prepared.measured if each.follows] == [
        ("beam_x", 0.0),
        ("beam_y", 0.0),
    ]


def test_other_values_change_constants_document_and_key_together(tmp_path: Path) -> None:
    given = followed(tmp_path, "[conditions]\nbeam_x = 0.25\nbeam_y = 0.5\n")
    prepared = given.with_values({"beam_x": -1.0})
    record = prepared.constants[velo_geometry.name].view(VELO_GEOMETRY.dtype)[0]
    assert (record["beamline_x"], record["beamline_y"]) == (-1.0, 0.5)
    assert set(prepared.constants) == {velo_geometry.name}
    assert prepared.document.content["conditions"] == {"beam_x": -1.0, "beam_y": 0.5}
    assert prepared.tck == CHAIN.trigger_of(prepared.document).tck(CHAIN.with_sequence("velo").sequence)
    assert prepared.tck != given.configured.tck
    assert [each.configured for each in prepared.measured if each.follows] == [-1.0, 0.5]
    assert given.with_values({"beam_x": 0.25}).tck == given.configured.tck


def test_a_value_out_of_the_range_of_its_condition_is_refused(tmp_path: Path) -> None:
    with pytest.raises(TriggerConfigError, match=r"beam_x: 3\.6 mm, expected -3\.5 to 3\.5"):
        followed(tmp_path).with_values({"beam_x": 3.6})


def test_a_document_that_differs_only_in_measured_conditions_can_be_taken_up(tmp_path: Path) -> None:
    given = followed(tmp_path)
    of_run = given.with_values({"beam_x": 0.501, "beam_y": -0.002})
    again = given.of_document(TckDocument.from_text(of_run.document.text))
    assert again is not None
    assert again.document == of_run.document
    assert given.of_document(given.configured.document) is given.configured


def test_a_document_that_differs_in_more_cannot_be_taken_up(tmp_path: Path) -> None:
    given = followed(tmp_path)
    document = given.with_values({"beam_x": 0.5}).document
    lines = document.content["lines"][:-1]
    assert given.of_document(replace(document, content={**document.content, "lines": lines})) is None
    # The configuration sets beam_y, and the document has none.
    assert followed(tmp_path, "[conditions]\nbeam_y = 0.5\n").of_document(document) is None


def test_an_engine_takes_the_constants_and_the_key_of_other_values(tmp_path: Path) -> None:
    given = followed(tmp_path)
    backend = create_backend("cpu", CHAIN.kernels, threads=1)
    geometry = CHAIN.with_sequence("velo").load_geometry(None)
    limits = BatchLimits(events=1, input_bytes=1 << 16)
    engine = CHAIN.create_engine(backend, geometry, given.configured.trigger, limits, retain="all")
    workspace = engine.create_workspace()
    prepared = given.with_values({"beam_y": 0.75})
    engine.replace_constants(prepared.constants, prepared.measured, prepared.tck)
    record = workspace.fetch(velo_geometry.name).view(VELO_GEOMETRY.dtype)[0]
    assert (record["beamline_x"], record["beamline_y"]) == (0.0, 0.75)
    assert engine.tck == prepared.tck
    assert [each.configured for each in engine.measured if each.follows] == [0.0, 0.75]
    with pytest.raises(ValueError, match="bytes, expected"):
        engine.replace_constants({velo_geometry.name: np.zeros(4, np.uint8)}, (), 0)
    engine.close()
