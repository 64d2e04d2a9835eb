"""hltnode farm: results for people and machines, and errors that a user can correct."""

import json
from pathlib import Path

import pytest
from typer.testing import CliRunner, Result

from hltnode.daemon.cli import app
from hltnode.daemon.commands.farm import measuring
from hltnode.daemon.commands.farm.measuring import parse_sizes
from hltnode.daemon.farm_model.sizing import parse_quantity

EXAMPLES = Path(__file__).parents[4] / "examples"


def run(*arguments: object) -> Result:
    return CliRunner().invoke(app, ["farm", *(str(argument) for argument in arguments)])


def error_of(result: Result) -> str:
    assert result.exit_code == 2, result.output
    return " ".join(result.output.split())


def test_the_small_example_survives_the_loss_of_a_node(tmp_path: Path) -> None:
    out, page = tmp_path / "f.json", tmp_path / "f.html"
    result = run("model", EXAMPLES / "farm-small.toml", "--seconds", 6, "--json", out, "--report", page)
    assert result.exit_code == 0, result.output
    found = json.loads(out.read_text())
    assert (found["nodes"], found["loss"], found["meps"]["left"]) == (3, 0.0, 0)
    assert found["meps"]["moved"] > 0
    assert found["latency_ms"]["p50"] < found["latency_ms"]["p99"] < found["latency_ms"]["max"]
    assert "MEPs from their production to their acknowledgement" in result.output
    assert page.read_text().count("<img") == 1
    assert "exists" in error_of(run("model", EXAMPLES / "farm-small.toml", "--report", page))


def test_runs_in_several_processes_have_the_numbers_of_one(tmp_path: Path) -> None:
    arguments = ["model", EXAMPLES / "farm-small.toml", "--seconds", 1, "--runs", 2, "--sweep", "service.speed=0.01,2"]
    found = []
    for jobs in (1, 2):
        page = tmp_path / f"{jobs}.html"
        result = run(*arguments, "--jobs", jobs, "--json", tmp_path / f"{jobs}.json", "--report", page)
        assert result.exit_code == 0, result.output
        assert "2 runs of 1 s" in result.output
        assert "2 runs of 1 s of beam" in page.read_text()
        numbers = json.loads((tmp_path / f"{jobs}.json").read_text())
        for each in (numbers, *numbers["sweep"]):
            each.pop("wall_s", None)
        found.append(numbers)
    assert found[0] == found[1]
    assert "error" in found[0]["sweep"][0], "a hundredth of the speed cannot carry the rate"
    assert found[0]["runs"] == found[0]["sweep"][1]["runs"] == 2


def test_a_farm_that_cannot_work_is_refused_at_once_with_the_number_of_nodes(tmp_path: Path) -> None:
    text = (EXAMPLES / "farm-lhcb.toml").read_text()
    assert "count = 500" in text
    (tmp_path / "farm.toml").write_text(text.replace("count = 500", "count = 400"))
    assert "at least 451 nodes are needed" in error_of(run("model", tmp_path / "farm.toml"))


def test_errors_of_a_description_name_file_and_key(tmp_path: Path) -> None:
    path = tmp_path / "farm.toml"
    path.write_text("[readout]\nsource = 3\n")
    error = error_of(run("model", path))
    assert f"{path}: readout.source: unknown key" in error
    assert "nodes: Field required" in error
    assert "No such file" in error_of(run("model", tmp_path / "none.toml"))


def test_a_size_has_files_to_start_from(tmp_path: Path) -> None:
    arguments = ["size", "--rate", "1MHz", "--event-bytes", "60k", "--sources", 36, "--accepted", 0.05]
    shown = run(*arguments, "--node-rate", "50kHz")
    assert shown.exit_code == 0, shown.output
    assert "nodes     24, of 50 kHz each" in shown.output
    assert "# farm.toml" in shown.output
    written = run(*arguments, "--node-rate", "50kHz", "--directory", tmp_path / "site")
    assert written.exit_code == 0, written.output
    assert sorted(path.name for path in (tmp_path / "site").iterdir()) == ["farm.toml", "node.toml"]
    assert "exists" in error_of(run(*arguments, "--node-rate", "50kHz", "--directory", tmp_path / "site"))
    both = [*arguments, "--node-rate", "50kHz", "--measurement", EXAMPLES / "farm-small.toml"]
    assert "or --node-rate, not both" in error_of(run(*both))
    assert parse_quantity("50kHz", "") == 5e4


def test_without_a_rate_this_machine_is_measured_with_simulated_events(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path / "cache"))
    out = tmp_path / "size.json"
    result = run("size", "--rate", "1kHz", "--event-bytes", "2k", "--sources", 8, "--chain", "raw", "--json", out)
    assert result.exit_code == 0, result.output
    found = json.loads(out.read_text())
    assert result.output.startswith(f"measured  {found['node_events_per_second'] / 1e3:.4g} kHz on this machine")
    assert 0.0 <= found["accepted"] <= 1.0
    assert len(list((tmp_path / "cache" / "hltnode" / "samples").glob("*.mdf"))) == 1


def test_damaged_events_are_left_out_of_a_measurement_and_named(tmp_path: Path) -> None:
    sample, measured = tmp_path / "minbias.mdf", tmp_path / "velo.json"
    assert CliRunner().invoke(app, ["simulate", "-n", "5", "-o", str(sample)]).exit_code == 0
    sample.write_bytes(sample.read_bytes()[:-10])
    arguments = ["--sequence", "velo", "--backend", "cpu", "--threads", 1, "--sizes", "1", "--batches", 10]
    result = run("measure", sample, "--out", measured, *arguments)
    assert result.exit_code == 1, result.output
    assert "left out, 1 damaged place:" in result.output
    assert str(sample) in result.output
    assert len(json.loads(measured.read_text())["points"]) == 4


def test_batches_above_the_largest_slot_are_refused(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    sample = tmp_path / "minbias.mdf"
    assert CliRunner().invoke(app, ["simulate", "-n", "3", "-o", str(sample)]).exit_code == 0
    monkeypatch.setattr(measuring, "MAX_BATCH_BYTES", 1000)
    error = error_of(run("measure", sample, "--out", tmp_path / "m.json", "--sizes", "2,8", "--backend", "cpu"))
    assert "--sizes: 8 events of this sample need up to" in error
    assert not (tmp_path / "m.json").exists()


@pytest.mark.parametrize("text", ["", "0", "16,16", "64,16", "16,x", "70000", "1e3", "²"])
def test_wrong_batch_sizes_are_refused(text: str) -> None:
    with pytest.raises(ValueError, match="--sizes"):
        parse_sizes(text)


def test_a_measurement_of_this_machine_sizes_and_runs_a_farm(tmp_path: Path) -> None:
    sample, measured = tmp_path / "minbias.mdf", tmp_path / "velo.json"
    assert CliRunner().invoke(app, ["simulate", "-n", "12", "--seed", "3", "-o", str(sample)]).exit_code == 0
    arguments = ["--sequence", "velo", "--backend", "cpu", "--threads", 1, "--sizes", "2,8", "--batches", 10]
    result = run("measure", sample, "--out", measured, *arguments)
    assert result.exit_code == 0, result.output
    points = json.loads(measured.read_text())["points"]
    assert [(point["occupancy"], point["events"]) for point in points] == [
        (occupancy, events) for occupancy in ("all", "low", "middle", "high") for events in (2, 8)
    ]
    assert all(point["batches"] == 10 for point in points)
    bytes_of = {point["occupancy"]: point["event_bytes"] for point in points}
    assert bytes_of["low"] < bytes_of["middle"] < bytes_of["high"]
    site = tmp_path / "site"
    asked = ["--rate", "500", "--event-bytes", "60k", "--sources", 4, "--measurement", measured, "--directory", site]
    assert run("size", *asked).exit_code == 0
    modelled = run("model", site / "farm.toml", "--seconds", 1, "--json", tmp_path / "f.json")
    assert modelled.exit_code == 0, modelled.output
    assert json.loads((tmp_path / "f.json").read_text())["meps"]["lost"] == 0
    measured.write_text(measured.read_text().replace('"chain": "lhcb"', '"chain": "mu3e"'))
    assert "measured for chain mu3e, expected lhcb" in error_of(run("model", site / "farm.toml"))
