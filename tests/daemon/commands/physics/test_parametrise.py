"""hltnode parametrise: writes and checks the file of parameters."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest
from typer.testing import CliRunner, Result

from hltnode.daemon.cli import app
from hltnode.processing.lhcb.geometry.field_map_file import read_field_map
from hltnode.processing.lhcb.geometry.magnet import UP, Magnet
from hltnode.processing.lhcb.geometry.scifi import SciFiGeometry
from hltnode.processing.lhcb.parametrisation import parametrise as module
from hltnode.processing.lhcb.parametrisation.parameters import PARAMETERS_FILE, LongTrackParameters
from hltnode.processing.lhcb.parametrisation.tracks import Tracks
from tests.processing.lhcb.geometry.field_maps import field_map_of, points_of, text_of


@pytest.fixture(autouse=True)
def few_flights(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(module, "N_FLIGHTS", 250)
    monkeypatch.setattr(module, "N_UNSEEN_FLIGHTS", 250)


def run(*arguments: object) -> Result:
    return CliRunner().invoke(app, ["parametrise", *map(str, arguments)])


@pytest.mark.expensive("fits the parametrisation")
def test_a_written_file_passes_the_check_and_a_changed_one_fails(tmp_path: Path) -> None:
    found = run("-o", tmp_path)
    assert found.exit_code == 0, found.output
    assert "behind_velo" in found.output
    assert LongTrackParameters.load(tmp_path).polarity == -1.0
    assert run("--check", tmp_path).exit_code == 0
    path = tmp_path / PARAMETERS_FILE
    path.write_text(path.read_text().replace('"polarity": -1.0', '"polarity": 1.0'))
    found = run("--check", tmp_path)
    assert found.exit_code == 1
    assert "out of date: polarity" in found.output


def test_the_polarity_is_that_of_the_geometry_files(shared: Path, tmp_path: Path) -> None:
    found = run("--geometry", shared / "data" / "lhcb-geometry", "-o", tmp_path)
    assert found.exit_code == 0, found.output
    assert LongTrackParameters.load(tmp_path).polarity == -1.0


def test_a_missing_folder_is_reported_before_the_work_starts(tmp_path: Path) -> None:
    for arguments in (("-o", tmp_path / "none"), ("--check", tmp_path / "none"), ("--geometry", tmp_path / "none")):
        found = run(*arguments)
        assert found.exit_code == 2
        assert "none" in found.output


def test_a_field_map_gives_the_parameters_of_its_field(tmp_path: Path) -> None:
    """Written from the built-in field: in 100 mm steps interpolation changes the bending power by some 1e-4."""
    field = tmp_path / "field_map.txt"
    step = 100.0
    found = field_map_of(Magnet(UP), (0.0, 4000.0, step), (0.0, 3000.0, step), (0.0, 9500.0, step))
    field.write_text(text_of(points_of(found)))
    (tmp_path / "map").mkdir()
    (tmp_path / "formula").mkdir()
    for arguments in (("--field", field, "-o", tmp_path / "map"), ("-o", tmp_path / "formula")):
        done = run(*arguments)
        assert done.exit_code == 0, done.output
    mapped, formula = (LongTrackParameters.load(tmp_path / name) for name in ("map", "formula"))
    # The polarity is that of the map where no geometry is given.
    assert (mapped.polarity, formula.polarity) == (1.0, -1.0)
    assert mapped.provenance["field digest"] == read_field_map(field).digest
    flights = Tracks.fly(Magnet(UP).field, SciFiGeometry.builtin().layer_z(), 300, skip=100_000)
    line, kink = flights.velo, flights.behind.tx - flights.velo.tx
    momenta = [parameters.behind_velo.momentum(line, kink) for parameters in (mapped, formula)]
    assert np.abs(momenta[0] / momenta[1] - 1.0).max() < 0.002
    curves = [p.behind_velo.curve(line, p.behind_velo.kink(line, flights.s)) for p in (mapped, formula)]
    fast = flights.p > 3.0
    assert np.abs(curves[0].x - curves[1].x)[fast].max() < 1.0
    assert np.abs(curves[0].y - curves[1].y)[fast].max() < 1.0


def test_the_polarity_of_the_geometry_overrides_that_of_the_map(shared: Path, tmp_path: Path) -> None:
    field = tmp_path / "field_map.txt"
    ranges = ((0.0, 3600.0, 300.0), (0.0, 2500.0, 250.0), (0.0, 9500.0, 250.0))
    field.write_text(text_of(points_of(field_map_of(Magnet(UP), *ranges))))
    done = run("--geometry", shared / "data" / "lhcb-geometry", "--field", field, "-o", tmp_path)
    assert done.exit_code == 0, done.output
    assert LongTrackParameters.load(tmp_path).polarity == -1.0


def test_an_unusable_map_is_reported_by_name(tmp_path: Path) -> None:
    field = tmp_path / "field_map.txt"
    field.write_text("1 2 3\n")
    done = run("--field", field)
    assert done.exit_code == 2
    assert "field_map.txt: 3 numbers in a line, expected 6" in " ".join(done.output.split())
