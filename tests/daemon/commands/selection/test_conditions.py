"""hltnode conditions, and the commands on files with a folder of conditions."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest
from typer.testing import CliRunner, Result

from hltnode.daemon.cli import app
from hltnode.processing.selection.configuration.tck import TckDocument

INDEX = """format = 1
chain = "lhcb"
version = "spring"
[[runs]]
first = 1
last = 2
files = ["common.toml", "first.toml"]
[[runs]]
first = 5
files = ["common.toml", "second.toml"]
"""


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Conditions, and events of the runs 2 and 5 in the VELO of these conditions."""
    found = tmp_path_factory.mktemp("conditions")
    (found / "conditions.toml").write_text(INDEX)
    (found / "common.toml").write_text("magnet_polarity = -1\nmasked_ut_lanes = [3, 4]\n")
    (found / "first.toml").write_text("beam_x = 0\nbeam_y = 0\nvelo_opening = 0\n")
    (found / "second.toml").write_text("beam_x = 0.75\nbeam_y = -0.5\nvelo_opening = 3\nvelo_a_y = 0.5\n")
    (found / "spare.toml").write_text("")
    (found / "lines.toml").write_text('[sequence]\nname = "velo"\n[[lines]]\ntype = "VeloMicroBias"\nname = "Hlt1A"\n')
    for run in (2, 5):
        options = ("-n", "12", "--detectors", "velo", "--run", str(run), "--conditions", found)
        assert invoke("simulate", *options, "-o", found / f"{run}.mdf").exit_code == 0
    (found / "both.mdf").write_bytes((found / "2.mdf").read_bytes() + (found / "5.mdf").read_bytes())
    return found


def invoke(*arguments: object) -> Result:
    return CliRunner().invoke(app, [str(argument) for argument in arguments])


def result_of(folder: Path, command: str, *arguments: object) -> dict[str, Any]:
    out = folder / "result.json"
    result = invoke(command, *arguments, "--conditions", folder, "--json", out, "--force")
    assert result.exit_code == 0, result.output
    found: dict[str, Any] = json.loads(out.read_text())
    return found


def error_of(result: Result) -> str:
    assert result.exit_code == 2, result.output
    return " ".join(result.output.split())


def test_show_prints_the_intervals_or_the_conditions_of_a_run(folder: Path, tmp_path: Path) -> None:
    text = invoke("conditions", "show", folder).output
    assert "version spring" in text
    assert "runs 1 to 2: common.toml, first.toml" in text
    assert "runs 5 and later" in text
    text = invoke("conditions", "show", folder, "--run", "7", "--json", tmp_path / "out.json").output
    assert "beam_x = 0.75 mm" in text
    assert "masked_ut_lanes = 2 channels: 3, 4" in text
    assert "magnet_polarity = -1\n" in text
    (shown,) = json.loads((tmp_path / "out.json").read_text())["intervals"]
    assert (shown["first"], shown["last"], shown["conditions"]["velo_opening"]) == (5, None, 3.0)
    assert "run 3 has no conditions" in error_of(invoke("conditions", "show", folder, "--run", "3"))


def test_check_names_gaps_and_unused_files_and_fails_with_an_error(folder: Path, tmp_path: Path) -> None:
    result = invoke("conditions", "check", folder)
    assert result.exit_code == 0
    assert "2 intervals of runs are valid" in result.output
    assert "runs 3 to 4 have no conditions" in result.output
    assert "no interval uses lines.toml, spare.toml" in result.output
    trigger = tmp_path / "trigger.toml"
    trigger.write_text("[conditions]\nbeam_x = 1\n")
    refused = invoke("conditions", "check", folder, "--trigger", trigger)
    assert "conditions.beam_x: a folder sets all" in error_of(refused)
    assert "conditions.toml: cannot be read" in error_of(invoke("conditions", "check", tmp_path))


def conditions_in(folder: Path, more: str) -> Path:
    """A folder with one interval and these values besides the required ones."""
    folder.mkdir()
    required = "beam_x = 0\nbeam_y = 0\nvelo_opening = 0\nmagnet_polarity = -1\n"
    (folder / "all.toml").write_text(required + more)
    index = 'format = 1\nchain = "lhcb"\nversion = "v"\n[[runs]]\nfirst = 2\nlast = 4\nfiles = ["all.toml"]\n'
    (folder / "conditions.toml").write_text(index)
    return folder


def test_check_names_each_wrong_value_and_channels_that_do_not_exist(tmp_path: Path) -> None:
    wrong = "velo_a_x = 9\nmasked_velo_asics = [624]\nmasked_ut_lanes = [7, 3]\nbeam_z = 1\n"
    text = error_of(invoke("conditions", "check", conditions_in(tmp_path / "wrong", wrong)))
    for fault in (
        "velo_a_x: 9 mm",
        "masked_velo_asics: 624",
        "masked_ut_lanes: 3 after 7",
        "beam_z: unknown condition",
    ):
        assert fault in text
    # 20 mats of four SiPMs behind the first SiPM: the first station has five modules of four mats in a quarter.
    absent = conditions_in(tmp_path / "absent", "masked_scifi_sipms = [2048, 2128]\n")
    assert "masked_scifi_sipms: the detector has no SciFi SiPM 2128" in error_of(invoke("conditions", "check", absent))


def test_check_finds_masked_channels_with_hits_in_data(folder: Path, tmp_path: Path) -> None:
    sample = tmp_path / "events.mdf"
    simulated = invoke("simulate", "-n", "40", "--detectors", "velo", "--run", "2", "-o", sample)
    assert simulated.exit_code == 0, simulated.output
    out = tmp_path / "out.json"
    given = ("--trigger", folder / "lines.toml", "--data", sample, "--json", out, "--force")
    good = invoke("conditions", "check", conditions_in(tmp_path / "good", ""), *given[:-1])
    assert (good.exit_code, json.loads(out.read_text())) == (0, {"events": 40, "contradictions": []}), good.output
    out.unlink()
    masks = conditions_in(tmp_path / "masks", "masked_velo_asics = [300, 301]\n")
    bad = invoke("conditions", "check", masks, *given[:-1])
    assert bad.exit_code == 1, bad.output
    found = json.loads(out.read_text())["contradictions"]
    assert [(each["number"], each["finding"]) for each in found] == [(n, "masked, but has hits") for n in (300, 301)]
    assert "VELO ASIC 300: masked, but has hits: " in bad.output
    assert all(each["hits"] > 25 for each in found)
    refused = invoke("conditions", "check", folder, "--trigger", folder / "lines.toml", "--data", folder / "both.mdf")
    assert "--data: the events belong to several intervals (runs 1 to 2, runs 5 and later)" in error_of(refused)
    no_run = invoke("conditions", "check", masks, "--trigger", folder / "lines.toml", "--data", folder / "5.mdf")
    assert "run 5 has no conditions" in error_of(no_run)


def test_each_run_of_a_file_is_processed_with_its_conditions_and_writes_its_document(folder: Path) -> None:
    lines = ("--trigger", folder / "lines.toml")
    found = result_of(folder, "process", folder / "both.mdf", *lines, "--accepted", folder / "accepted.mdf")
    keys = found["trigger"]["tck_of_run"]
    assert list(keys) == ["2", "5"]
    assert found["trigger"]["tck"] == keys["2"] != keys["5"]
    documents = {run: TckDocument.load(folder / f"{key}.json").content["conditions"] for run, key in keys.items()}
    assert documents["5"] == {"beam_x": 0.75, "beam_y": -0.5, "velo_a_y": 0.5, "velo_opening": 3.0}
    assert documents["2"] == {"beam_x": 0.0, "beam_y": 0.0, "velo_opening": 0.0}
    alone = [result_of(folder, "process", folder / f"{run}.mdf", *lines) for run in (2, 5)]
    assert found["per_event"] == [*alone[0]["per_event"], *alone[1]["per_event"]]
    nominal = invoke("process", folder / "5.mdf", *lines, "--json", "-").stdout
    assert sum(event["pvs"] for event in json.loads(nominal)["per_event"]) < 0.5 * alone[1]["objects"]["pvs"]
    rates = result_of(folder, "rates", folder / "both.mdf", *lines)
    assert rates["tck_of_run"] == keys


@pytest.mark.slow
def test_kept_events_of_a_run_with_conditions_give_the_same_decisions_again(folder: Path) -> None:
    accepted = folder / "of_5.mdf"
    lines = ("--trigger", folder / "lines.toml")
    result_of(folder, "process", folder / "5.mdf", *lines, "--accepted", accepted)
    result = invoke("replay-check", accepted, "--json", "-")
    assert result.exit_code == 0, result.output
    assert json.loads(result.stdout)["identical"]


def test_a_run_without_conditions_is_refused_by_name(
    folder: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    (tmp_path / "conditions.toml").write_text(INDEX.replace("last = 2", "last = 1"))
    for name in ("common", "first", "second"):
        (tmp_path / f"{name}.toml").write_bytes((folder / f"{name}.toml").read_bytes())
    given = ("--conditions", tmp_path, "--trigger", folder / "lines.toml")
    for command, *options in (("process",), ("rates",), ("validate",), ("display", "-o", "picture.html")):
        result = invoke(command, folder / "2.mdf", *options, *given)
        assert "run 2 has no conditions in" in error_of(result), command
    simulated = invoke("simulate", "-n", "1", "--run", "2", "-o", "new.mdf", "--conditions", tmp_path)
    assert "run 2 has no conditions in" in error_of(simulated)
