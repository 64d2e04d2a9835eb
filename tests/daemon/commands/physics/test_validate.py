import json
from pathlib import Path

import pytest
from typer.testing import CliRunner, Result

from hltnode.daemon.cli import app
from hltnode.processing.lhcb.geometry.velo import VeloGeometry
from hltnode.processing.lhcb.offline.simulation.velo_generator import simulate_events
from hltnode.protocol.lhcb.bank_types import LhcbBankType
from hltnode.protocol.raw_data.mdf import encode_record
from hltnode.protocol.raw_data.raw_bank import RawBank, encode_banks

Events = list[list[RawBank]]

TRUTH = (LhcbBankType.MC_TRACKS, LhcbBankType.MC_VERTICES)


def write(path: Path, events: Events) -> Path:
    path.write_bytes(b"".join(encode_record(encode_banks(banks), run=1) for banks in events))
    return path


@pytest.fixture(scope="module")
def events() -> Events:
    return list(simulate_events(6, 2, geometry=VeloGeometry.builtin(), nu=3.0))


def run(*arguments: object) -> Result:
    return CliRunner().invoke(app, [str(argument) for argument in arguments])


def validate(*arguments: object) -> Result:
    """The VELO chain on one thread: the events have no other detector."""
    return run("validate", *arguments, "--sequence", "velo", "--threads", 1)


def test_the_json_keeps_its_contract_and_has_all_data_of_the_plots(events: Events, tmp_path: Path) -> None:
    sample = write(tmp_path / "mb.mdf", events)
    found = validate(sample, "--json", tmp_path / "out.json")
    assert found.exit_code == 0, found.output
    result = json.loads((tmp_path / "out.json").read_text())
    assert list(result["velo"]) == ["ghost_rate", "categories"]
    assert list(result["velo"]["categories"]["long"]) == [
        "reconstructible",
        "reconstructed",
        "efficiency",
        "clone_rate",
        "hit_purity",
        "hit_efficiency",
        "hit_efficiency_first3",
        "hit_efficiency_last",
    ]
    assert list(result["pv"]) == ["reconstructible", "reconstructed", "efficiency", "false_rate"]
    assert result["velo"]["categories"]["long"]["efficiency"] > 0.9
    assert set(result["histograms"]["stages"]) == {"velo"}
    assert "truth" not in result
    assert "long" not in result
    assert "02_long" in found.output


def test_truth_of_another_event_is_reported_and_skipped(events: Events, tmp_path: Path) -> None:
    first, second, *others = events
    mixed = [bank for bank in first if bank.type not in TRUTH] + [bank for bank in second if bank.type in TRUTH]
    sample = write(tmp_path / "mixed.mdf", [mixed, second, *others])
    found = validate(sample, "--json", tmp_path / "out.json")
    assert found.exit_code == 0, found.output
    truth = json.loads((tmp_path / "out.json").read_text())["truth"]
    assert truth["events_left_out"] == 1
    assert truth["reasons"] == {"ids_without_hits": 1}
    assert truth["named"][0].startswith("run 1 event 0: ids of its particles are not hits of the event")
    assert "1 events left out" in found.output
    # The numbers are those of the other events.
    rest = validate(write(tmp_path / "rest.mdf", events[1:]))
    assert rest.output.strip() in found.output


def test_a_sample_without_truth_has_no_efficiencies_and_a_message(events: Events, tmp_path: Path) -> None:
    bare = [[bank for bank in banks if bank.type not in TRUTH] for banks in events]
    found = run("validate", write(tmp_path / "bare.mdf", bare), "--threads", 1, "--json", tmp_path / "out.json")
    assert found.exit_code == 0, found.output
    assert "has no truth of particles" in " ".join(found.output.split())
    assert "6 events: no bank of particles" in found.output
    result = json.loads((tmp_path / "out.json").read_text())
    assert result["velo"]["categories"]["long"]["efficiency"] is None
    assert result["truth"]["reasons"] == {"missing": 6}


def test_a_report_of_a_sample_without_truth_can_be_written(events: Events, tmp_path: Path) -> None:
    pytest.importorskip("matplotlib", reason="the extra `plot` is not installed")
    bare = [[bank for bank in banks if bank.type not in TRUTH] for banks in events[:1]]
    sample = write(tmp_path / "bare.mdf", bare)
    assert run("validate", sample, "--threads", 1, "--report", tmp_path / "r.html").exit_code == 0


def test_a_report_of_empty_crossings_can_be_written(tmp_path: Path) -> None:
    pytest.importorskip("matplotlib", reason="the extra `plot` is not installed")
    empty = list(simulate_events(3, 2, geometry=VeloGeometry.builtin(), nu=0.0))
    sample, report = write(tmp_path / "empty.mdf", empty), tmp_path / "r.html"
    found = run("validate", sample, "--threads", 1, "--report", report)
    assert found.exit_code == 0, found.output
    assert "primary vertices" in report.read_text().lower()


@pytest.mark.parametrize(
    ("content", "message"),
    [
        ("{", "not a result of hltnode validate --json: file: Invalid JSON"),
        ("[]", "not a result of hltnode validate"),
        ('{"velo": {"ghost_rate": 0.1, "categories": {}}, "pv": null}', "histograms: Field required"),
        ('{"histograms": {"events": 3, "stages": {}, "residuals": {}}}', "velo: Field required"),
    ],
)
def test_a_result_that_cannot_be_overlaid_is_refused_by_name(
    events: Events, tmp_path: Path, content: str, message: str
) -> None:
    pytest.importorskip("matplotlib", reason="the extra `plot` is not installed")
    other = tmp_path / "other.json"
    other.write_text(content)
    sample = write(tmp_path / "mb.mdf", events)
    found = run("validate", sample, "--report", tmp_path / "r.html", "--against", other)
    assert found.exit_code == 2
    text = " ".join(found.output.split())
    assert message in text
    assert "other.json" in text
    assert not (tmp_path / "r.html").exists()


def test_against_needs_a_report(events: Events, tmp_path: Path) -> None:
    found = run("validate", write(tmp_path / "mb.mdf", events), "--against", tmp_path / "other.json")
    assert found.exit_code == 2
    assert "--report" in found.output


def test_without_matplotlib_a_report_is_refused_before_the_work_begins(
    events: Events, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("hltnode.daemon.commands.common.find_spec", lambda _: None)
    found = run("validate", tmp_path / "not there.mdf", "--report", tmp_path / "r.html")
    assert found.exit_code == 2
    assert "pip install -e '.[plot]'" in " ".join(found.output.split())


@pytest.mark.usefixtures("without_layout", "two_variables")
def test_a_report_overlays_an_earlier_result(events: Events, tmp_path: Path) -> None:
    pytest.importorskip("matplotlib", reason="the extra `plot` is not installed")
    sample = write(tmp_path / "mb.mdf", events)
    earlier = tmp_path / "earlier.json"
    assert validate(sample, "--json", earlier).exit_code == 0
    found = validate(sample, "--report", tmp_path / "r.html", "--against", earlier)
    assert found.exit_code == 0, found.output
    page = (tmp_path / "r.html").read_text()
    assert "mb.mdf against earlier.json" in page
    assert page.count("<img") == 12


def test_a_result_whose_sums_do_not_fit_their_bins_is_refused_by_name(events: Events, tmp_path: Path) -> None:
    pytest.importorskip("matplotlib", reason="the extra `plot` is not installed")
    sample, earlier = write(tmp_path / "mb.mdf", events), tmp_path / "earlier.json"
    assert validate(sample, "--json", earlier).exit_code == 0
    result = json.loads(earlier.read_text())
    result["histograms"]["stages"]["velo"]["categories"]["long"]["eta"]["clones"].pop()
    earlier.write_text(json.dumps(result))
    found = run("validate", sample, "--report", tmp_path / "r.html", "--against", earlier)
    assert found.exit_code == 2
    text = " ".join(found.output.split())
    assert "earlier.json" in text
    assert "long.eta: Value error, clones has 14 values in 15 bins" in text


def test_a_result_whose_curves_do_not_fit_is_refused_by_name(events: Events, tmp_path: Path) -> None:
    pytest.importorskip("matplotlib", reason="the extra `plot` is not installed")
    sample, earlier = write(tmp_path / "mb.mdf", events), tmp_path / "earlier.json"
    assert validate(sample, "--json", earlier).exit_code == 0
    result = json.loads(earlier.read_text())
    result["curves"]["velo"]["hits"]["categories"]["long"]["efficiency"].pop()
    earlier.write_text(json.dumps(result))
    found = run("validate", sample, "--report", tmp_path / "r.html", "--against", earlier)
    assert found.exit_code == 2
    assert "the curve of long does not fit its ghost rates" in " ".join(found.output.split())


def test_a_file_whose_truth_matches_no_event_is_an_error(events: Events, tmp_path: Path) -> None:
    first, second = events[:2]
    swapped = [
        [bank for bank in one if bank.type not in TRUTH] + [bank for bank in other if bank.type in TRUTH]
        for one, other in ((first, second), (second, first))
    ]
    found = validate(write(tmp_path / "swapped.mdf", swapped))
    assert found.exit_code == 1
    assert "2 events: ids of its particles are not hits of the event" in found.output
    assert "no event has truth that matches it" in " ".join(found.output.split())


def test_a_damaged_event_is_named_with_its_file(events: Events, tmp_path: Path) -> None:
    path = write(tmp_path / "cut.mdf", events[:1])
    path.write_bytes(path.read_bytes()[:-8])
    found = validate(path)
    assert found.exit_code == 2
    assert "cut.mdf: " in "".join(found.output.splitlines())


def test_a_path_that_cannot_be_written_is_refused_before_the_work_begins(events: Events, tmp_path: Path) -> None:
    sample = write(tmp_path / "mb.mdf", events)
    for option in ("--json", "--report"):
        found = run("validate", sample, option, tmp_path / "no" / "where")
        assert found.exit_code == 2
        assert "there is no folder" in found.output
        assert "velo_validator" not in found.output
    found = run("validate", sample, "--threads", 1, "--json", "/dev/full")
    assert found.exit_code == 2
    assert "/dev/full: cannot be written: No space left on device" in " ".join(found.output.split())


def test_the_json_has_every_line_of_the_text_with_its_event_weighted_efficiency(events: Events, tmp_path: Path) -> None:
    out = tmp_path / "out.json"
    found = validate(write(tmp_path / "mb.mdf", events), "--json", out)
    lines = json.loads(out.read_text())["lines"]["velo"]
    assert f"{lines['ghosts']:9d}/{lines['tracks']:9d}" in found.output
    for label, counts in lines["categories"].items():
        if counts["reconstructible"]:
            (line,) = (line for line in found.output.splitlines() if line.startswith(f"{label} "))
            assert f"({100 * counts['efficiency_per_event']:6.2f}%)" in line
            assert f"{counts['clones']:9d} (" in line
            low, high = counts["efficiency_interval"]
            assert low <= counts["efficiency"] <= high
    assert {"04_long_strange", "09_long_fromB_electrons", "11_long_fromSignal"} <= set(lines["categories"])
