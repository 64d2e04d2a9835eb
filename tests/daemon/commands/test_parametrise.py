"""hltnode parametrise: writes and checks the file of parameters."""

from __future__ import annotations

from pathlib import Path

import pytest
from typer.testing import CliRunner, Result

from hltnode.daemon.cli import app
from hltnode.processing.lhcb.parametrisation import parametrise as module
from hltnode.processing.lhcb.parametrisation.parameters import PARAMETERS_FILE, LongTrackParameters


@pytest.fixture(autouse=True)
def few_flights(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(module, "N_FLIGHTS", 250)
    monkeypatch.setattr(module, "N_UNSEEN_FLIGHTS", 250)


def run(*arguments: object) -> Result:
    return CliRunner().invoke(app, ["parametrise", *map(str, arguments)])


def test_a_written_file_passes_its_check_and_another_one_does_not(tmp_path: Path) -> None:
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


def test_a_folder_that_is_not_there_is_named_before_the_work_begins(tmp_path: Path) -> None:
    for arguments in (("-o", tmp_path / "none"), ("--check", tmp_path / "none"), ("--geometry", tmp_path / "none")):
        found = run(*arguments)
        assert found.exit_code == 1
        assert "none" in found.output
