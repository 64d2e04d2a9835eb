"""hltnode luminosity: from simulated events with known mu to the luminosity of a run."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from typer.testing import CliRunner

import hltnode
from hltnode.daemon.cli import app
from hltnode.daemon.commands.selection.luminosity import _Schemas
from hltnode.processing.lhcb.luminosity.collections import LUMI_SATURATED, ODIN_LUMI
from hltnode.processing.lhcb.luminosity.counters import COUNTERS
from hltnode.processing.lhcb.offline.simulation.generation.filling import COLLIDING_BUNCHES, Filling
from hltnode.processing.lhcb.offline.simulation.response.plume_response import CHANNEL_EFFICIENCY, plume_banks
from hltnode.processing.lhcb.offline.simulation.velo_generator import crossing_bank
from hltnode.processing.selection.reports.lumi_schema import lumi_schema
from hltnode.protocol import decode_odin, encode_banks, encode_record
from hltnode.protocol.lhcb.bank_types import LhcbBankType
from hltnode.protocol.raw_data.odin import CrossingType

runner = CliRunner()
NU, N = 3.0, 2000
TRIGGER = """
[[lines]]
type = "OdinEventType"
name = "Hlt1ODINLumi"
mask = 8

[sequence]
name = "hlt1_2026"

[sequence.ecal_decode_cells]
required = 0
"""


def run(*arguments: object, code: int = 0) -> str:
    result = runner.invoke(app, [str(argument) for argument in arguments])
    assert result.exit_code == code, result.output
    return result.output


def accept(folder: Path, name: str) -> dict[str, Any]:
    (folder / "trigger.toml").write_text(TRIGGER)
    run(
        "process",
        folder / f"{name}.mdf",
        "--trigger",
        folder / "trigger.toml",
        "--threads",
        1,
        "--json",
        folder / f"{name}.json",
        "--accepted",
        folder / f"{name}_accepted.mdf",
    )
    found: dict[str, Any] = json.loads((folder / f"{name}.json").read_text())
    return found


def measure(folder: Path, name: str, *options: object) -> dict[str, Any]:
    run(
        "luminosity",
        folder / f"{name}_accepted.mdf",
        "--tck",
        *folder.glob("0x*.json"),
        *options,
        "--json",
        folder / f"{name}_lumi.json",
        "--force",
    )
    found: dict[str, Any] = json.loads((folder / f"{name}_lumi.json").read_text())
    return found


@pytest.fixture(scope="module")
def luminometer(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A run of which only ODIN and PLUME are there, accepted: many crossings with known mu."""
    folder = tmp_path_factory.mktemp("plume")
    ids = range(N)
    filling = Filling.of(ids, 3)
    collide = filling.crossing == CrossingType.BEAM_BEAM
    n_collisions = np.random.default_rng(3).poisson(NU, N) * collide
    with (folder / "run.mdf").open("wb") as file:
        for i, bank in enumerate(plume_banks(filling, n_collisions)):
            odin = crossing_bank(77, i, int(filling.bunch[i]), int(filling.crossing[i]), ODIN_LUMI)
            file.write(encode_record(encode_banks([odin, bank]), run=77))
    accept(folder, "run")
    return folder


def test_the_measured_mu_is_the_true_one_within_its_error(luminometer: Path) -> None:
    section = 70.0 * CHANNEL_EFFICIENCY
    options = ("--cross-section", f"PlumeChannels={section}", "--colliding-bunches", COLLIDING_BUNCHES)
    found = measure(luminometer, "run", *options)
    (of_run,) = found["runs"]
    assert (of_run["run"], of_run["events"], sum(of_run["crossings"].values())) == (77, N, N)
    assert min(of_run["crossings"].values()) > N / 10
    plume = next(each for each in of_run["counters"] if each["counter"] == "PlumeChannels")
    mu, error = plume["mu"]["value"] / CHANNEL_EFFICIENCY, plume["mu"]["error"] / CHANNEL_EFFICIENCY
    assert abs(mu - NU) < 3 * error < 0.3 * NU
    # Without the background of the beams, it would be more than 3 % higher.
    assert plume["by_crossing"]["beam_1"]["value"] > 0 == plume["by_crossing"]["no_beam"]["value"]
    rate = COLLIDING_BUNCHES * 40_078_000 / 3564
    assert plume["integrated_per_nb"]["value"] == pytest.approx(
        mu * rate * of_run["duration_s"] / (70.0 * 1e6), rel=1e-6
    )
    text = run(
        "luminosity",
        luminometer / "run_accepted.mdf",
        "--counter",
        "PlumeChannels",
        "--tck",
        *luminometer.glob("0x*.json"),
    )
    assert f"run 77: {N} events" in text
    assert "PlumeChannels (log-zero): mu 0.1" in text


def test_counters_that_are_not_there_are_named(luminometer: Path) -> None:
    events, document = luminometer / "run_accepted.mdf", next(luminometer.glob("0x*.json"))
    assert "expected some of" in run("luminosity", events, "--tck", document, "--counter", "Nothing", code=2)
    assert "expected NAME=MB" in run("luminosity", events, "--cross-section", "VeloTracks", code=2)
    assert "no event has a luminosity summary" in run("luminosity", luminometer / "run.mdf", code=2)
    schema = luminometer / "counters.json"
    schema.write_text(json.dumps(lumi_schema((), COUNTERS).document))
    known = lumi_schema((), COUNTERS)
    # The name of a file may be a key, as LHCb names its schemas; there is no chain to ask for others.
    assert _Schemas("no chain", [], [schema]).find(known.key) == known
    assert _Schemas("no chain", [], [schema.rename(luminometer / "deadbeef.json")]).find(0xDEADBEEF) == known
    schema.write_text("[]")
    assert "counters.json" in run("luminosity", events, "--schema", schema, code=2)


def test_summaries_of_whole_events_have_the_counters_of_the_reconstruction(tmp_path: Path) -> None:
    run("simulate", "-n", 24, "--seed", 5, "--nu", 2, "--luminosity", "-o", tmp_path / "run.mdf")
    per_event = accept(tmp_path, "run")["per_event"]
    events = list(hltnode.open(tmp_path / "run_accepted.mdf"))
    assert len(events) == len(per_event) == 24
    collide = []
    for event, of_event in zip(events, per_event, strict=True):
        odin = event.odin
        counters = event.luminosity
        assert odin is not None
        collide.append(odin.crossing_type == CrossingType.BEAM_BEAM)
        assert counters["VeloTracks"] == min(of_event["velo_tracks"], 2047)
        assert counters["VeloVertices"] == of_event["pvs"]
        assert counters["BXType"] == odin.crossing_type
        assert counters["PlumeRead"] == 1
        assert counters["Saturated"] == bool("LUMI_SATURATED" in of_event["flags"])
        assert (counters["VeloTracks"] > 0) <= collide[-1]
        assert len(event.banks_of("PLUME")) == 1
    assert 4 < sum(collide) < 24
    run("inspect", tmp_path / "run_accepted.mdf", "--json", tmp_path / "inspect.json")
    trigger = json.loads((tmp_path / "inspect.json").read_text())["trigger"]
    (summary,) = trigger["lumi_summaries"]
    assert summary["key"] == f"0x{lumi_schema((), COUNTERS).key:08X}"
    assert summary["means"]["VeloTracks"] == pytest.approx(np.mean([event["velo_tracks"] for event in per_event]))
    assert LUMI_SATURATED.name == "lumi_saturated"


def test_events_for_luminosity_need_all_detectors_and_leave_other_events_as_they_are(tmp_path: Path) -> None:
    velo = ("simulate", "-n", 1, "--luminosity", "--detectors", "velo", "-o", tmp_path / "velo.mdf")
    assert "luminometer" in run(*velo, code=2)
    for name, option in (("plain", ()), ("lumi", ("--luminosity",))):
        run("simulate", "-n", 6, "--seed", 5, "--nu", 1, *option, "-o", tmp_path / f"{name}.mdf")
    kept = 0
    for plain, lumi in zip(hltnode.open(tmp_path / "plain.mdf"), hltnode.open(tmp_path / "lumi.mdf"), strict=True):
        assert [bank.type for bank in plain.raw_banks].count(LhcbBankType.PLUME) == 0
        odin = decode_odin(lumi.raw_banks[0])
        assert odin.event_type == ODIN_LUMI
        if odin.crossing_type == CrossingType.BEAM_BEAM:
            kept += 1
            assert plain.raw_banks[1:] == [bank for bank in lumi.raw_banks[1:] if bank.type != LhcbBankType.PLUME]
    assert kept > 0
