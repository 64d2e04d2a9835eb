import json
import re
from collections.abc import Iterable
from pathlib import Path

import pytest
from typer.testing import CliRunner, Result

from hltnode.daemon.cli import app
from hltnode.processing.lhcb.geometry.velo import VeloGeometry
from hltnode.processing.lhcb.offline.simulation.velo_generator import simulate_events
from hltnode.protocol.lhcb.bank_types import LhcbBankType
from hltnode.protocol.raw_data.mdf import encode_record
from hltnode.protocol.raw_data.raw_bank import RawBank, encode_banks


def write(path: Path, events: Iterable[list[RawBank]]) -> Path:
    path.write_bytes(b"".join(encode_record(encode_banks(banks), run=1) for banks in events))
    return path


def run(*arguments: object) -> Result:
    return CliRunner().invoke(app, ["compare", *map(str, arguments)])


def test_without_matplotlib_the_report_is_refused_before_the_work_begins(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("hltnode.daemon.commands.common.find_spec", lambda _: None)
    found = run(tmp_path / "a.mdf", tmp_path / "b.mdf", "-o", tmp_path / "r.html")
    assert found.exit_code == 2
    assert "pip install -e '.[plot]'" in " ".join(found.output.split())


@pytest.mark.expensive("fills and draws all compared quantities")
@pytest.mark.physics
@pytest.mark.usefixtures("without_layout")
@pytest.mark.parametrize("loaded", [pytest.param(False, marks=pytest.mark.slow), True])
def test_real_and_simulated_events_are_compared(shared: Path, tmp_path: Path, loaded: bool) -> None:
    pytest.importorskip("matplotlib", reason="the extra `plot` is not installed")
    reference = shared / "data" / "lhcb-minbias-mdf" / "minbias_1f258735_retina3_mc2_ev6001_6007.mdf"
    folder = shared / "data" / "lhcb-geometry"
    other = write(tmp_path / "mb.mdf", simulate_events(5, 1, geometry=VeloGeometry.load(folder)))
    report, result = tmp_path / "r.html", tmp_path / "out.json"
    found = run(reference, other, "-o", report, "--json", result, *(["--geometry", folder] if loaded else []))
    assert found.exit_code == 0, found.output
    compared = json.loads(result.read_text())
    assert (compared["reference_events"], compared["other_events"]) == (7, 5)
    assert compared["reference"] == str(reference)
    assert {"ut_hits_per_event", "scifi_hits_per_event", "muon_hits_per_event", "muon_region"} <= set(
        compared["quantities"]
    )
    assert 0 <= compared["quantities"]["velo_clusters_per_sensor"]["kolmogorov_distance"] < 0.5
    assert "velo_clusters_per_event" in found.output
    page = report.read_text()
    assert "<img" in page
    assert "mb.mdf / minbias_1f258735_retina3_mc2_ev6001_6007.mdf" in page or "means that can be compared agree" in page
    assert "[bytes]" in found.output


def test_no_sample_is_called_real_or_simulated(tmp_path: Path) -> None:
    """Whether one is, only the user knows."""
    pytest.importorskip("matplotlib", reason="the extra `plot` is not installed")
    banks = list(simulate_events(2, 1, geometry=VeloGeometry.builtin(), nu=1.0))
    first, second = write(tmp_path / "a.mdf", banks), write(tmp_path / "b.mdf", banks[:1])
    report, result = tmp_path / "r.html", tmp_path / "r.json"
    found = run(first, second, "-o", report, "--json", result)
    assert found.exit_code == 0, found.output
    text = re.sub(r'src="data:[^"]*"', "", report.read_text())
    for said in (text, result.read_text(), found.output):
        assert not re.search(r"\b(real|simulated|Real|Simulated)(\b|_)", said)
    assert '<th scope="col">a.mdf' in text


def test_an_unreadable_bank_is_reported_with_file_and_event(tmp_path: Path) -> None:
    pytest.importorskip("matplotlib", reason="the extra `plot` is not installed")
    (banks,) = simulate_events(1, 1, geometry=VeloGeometry.builtin(), nu=1.0, first_event=17)
    broken = [*banks, RawBank(LhcbBankType.UT, 3, 5, memoryview(b"\xff\xff\0\0"))]
    found = run(write(tmp_path / "a.mdf", [broken]), write(tmp_path / "b.mdf", [banks]), "-o", tmp_path / "r.html")
    assert found.exit_code == 2
    text = "".join(found.output.split())
    for part in ("a.mdf", "run1event17", "UTbankofsource5"):
        assert part in text
    assert not (tmp_path / "r.html").exists()


def test_a_missing_geometry_is_an_error(tmp_path: Path) -> None:
    pytest.importorskip("matplotlib", reason="the extra `plot` is not installed")
    found = run(tmp_path / "a.mdf", tmp_path / "b.mdf", "-o", tmp_path / "r.html", "--geometry", tmp_path)
    assert found.exit_code == 2
    assert "cannot be read" in " ".join(found.output.split())
