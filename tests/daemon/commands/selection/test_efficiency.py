"""hltnode efficiency."""

from __future__ import annotations

import json
from collections.abc import Sequence
from pathlib import Path

import pytest
from typer.testing import CliRunner, Result

from hltnode.daemon.cli import app
from hltnode.protocol.lhcb.bank_types import LhcbBankType
from hltnode.protocol.raw_data.mdf import encode_record
from hltnode.protocol.raw_data.raw_bank import RawBank, encode_banks
from tests.processing.lhcb.full_events import full_events

TRIGGER = """
[sequence]
name = "forward"
[[lines]]
type = "TwoTrackMVA"
name = "Hlt1TwoTrackMVA"
[[lines]]
type = "VeloMicroBias"
name = "Hlt1MicroBias"
"""


def write(path: Path, events: Sequence[Sequence[RawBank]]) -> Path:
    path.write_bytes(b"".join(encode_record(encode_banks(banks), run=1) for banks in events))
    return path


@pytest.fixture(scope="module")
def trigger(tmp_path_factory: pytest.TempPathFactory) -> Path:
    path = tmp_path_factory.mktemp("efficiency") / "one.toml"
    path.write_text(TRIGGER)
    return path


def run(*arguments: object) -> Result:
    return CliRunner().invoke(app, ["efficiency", *(str(argument) for argument in arguments), "--threads", "1"])


def test_lines_and_any_line_have_efficiencies_and_trigger_on_signal(trigger: Path, tmp_path: Path) -> None:
    sample = write(tmp_path / "bsphiphi.mdf", full_events(16, 3, sample="bsphiphi", nu=1.0))
    out, page = tmp_path / "out.json", tmp_path / "page.html"
    found = run(
        *(sample, "--trigger", trigger, "--json", out, "--report", page),
        *("--scan", "Hlt1TwoTrackMVA.min_response=0.0,0.9569,1.0"),
    )
    assert found.exit_code == 0, found.output
    result = json.loads(out.read_text())
    assert (result["events"], result["products"], result["sequence"]) == (16, 4, "forward")
    assert 0 < result["reconstructible"] < 16
    line, every = result["lines"]["Hlt1TwoTrackMVA"], result["lines"]["Hlt1MicroBias"]
    assert line["of_all"]["efficiency"] >= line["of_all"]["trigger_on_signal"] > 0
    assert every["of_all"]["efficiency"] == 1.0
    assert every["trigger_on_signal"] is None
    assert result["any"]["efficiency"] == 1.0
    assert result["any"]["trigger_on_signal"] == line["trigger_on_signal"]
    points = [point["line"]["of_all"] for point in result["scans"][0]["points"]]
    assert points[1] == line["of_all"]
    assert points[0]["efficiency"] >= points[1]["efficiency"] > points[2]["efficiency"] == 0.0
    assert page.read_text().count("<figure>") == 3
    assert "truth" not in result


def test_a_sample_without_truth_or_signal_is_refused_and_says_why(trigger: Path, tmp_path: Path) -> None:
    events = full_events(2, 1, sample="minbias", nu=1.0)
    no_signal = run(write(tmp_path / "mb.mdf", events), "--trigger", trigger)
    assert no_signal.exit_code == 2
    assert "no event has a signal decay" in no_signal.output
    bare = [
        [bank for bank in banks if bank.type not in (LhcbBankType.MC_TRACKS, LhcbBankType.MC_VERTICES)]
        for banks in events
    ]
    no_truth = run(write(tmp_path / "bare.mdf", bare), "--trigger", trigger)
    assert no_truth.exit_code == 2
    assert "no event has one that can be used: no bank of particles (2)" in " ".join(no_truth.output.split())


def test_samples_of_different_decays_have_no_efficiency_together(trigger: Path, tmp_path: Path) -> None:
    four = write(tmp_path / "bsphiphi.mdf", full_events(2, 3, sample="bsphiphi", nu=1.0))
    two = write(tmp_path / "z.mdf", full_events(8, 6, sample="z", nu=1.0))
    mixed = run(four, two, "--trigger", trigger)
    assert mixed.exit_code == 2
    assert "need a sample of one decay" in " ".join(mixed.output.split())


def test_events_with_wrong_truth_are_skipped_and_reported(trigger: Path, tmp_path: Path) -> None:
    events = list(full_events(16, 3, sample="bsphiphi", nu=1.0)[:4])
    events[1] = [bank for bank in events[1] if bank.type != LhcbBankType.MC_TRACKS]
    found = run(write(tmp_path / "mixed.mdf", events), "--trigger", trigger, "--json", tmp_path / "out.json")
    assert found.exit_code == 0, found.output
    result = json.loads((tmp_path / "out.json").read_text())
    assert result["events"] == 3
    assert result["truth"]["reasons"] == {"missing": 1}
    assert "1 events are left out" in found.output


def test_an_empty_file_is_refused(trigger: Path, tmp_path: Path) -> None:
    (tmp_path / "empty.mdf").write_bytes(b"")
    found = run(tmp_path / "empty.mdf", "--trigger", trigger)
    assert found.exit_code == 2
    assert "the file is empty" in found.output
