"""hltnode validate --reference: dumps of the same events compared quantity by quantity."""

import json
import shutil
from pathlib import Path

import pytest
from typer.testing import CliRunner, Result

from hltnode.daemon.cli import app
from hltnode.processing.lhcb.offline.simulation.detector import Detector
from hltnode.processing.lhcb.offline.simulation.full_generator import FullSimulation
from hltnode.processing.lhcb.offline.simulation.generation.sources import sample_source
from hltnode.processing.lhcb.offline.validation.reference import dumps
from hltnode.protocol.lhcb.bank_types import LhcbBankType
from hltnode.protocol.raw_data.bank_types import BankType
from hltnode.protocol.raw_data.mdf import encode_record
from hltnode.protocol.raw_data.odin import decode_odin
from hltnode.protocol.raw_data.raw_bank import RawBank, encode_banks
from tests.processing.lhcb.offline.validation.dump_writer import write_dump

Events = list[list[RawBank]]


def number_of(banks: list[RawBank]) -> tuple[int, int]:
    odin = decode_odin(next(bank for bank in banks if bank.type == BankType.ODIN))
    return odin.run, odin.event_id


@pytest.fixture(scope="module")
def events() -> Events:
    detector = Detector.builtin()
    return list(FullSimulation(detector, sample_source("minbias", 3.0, detector.velo.beamline)).events(3, 5))


@pytest.fixture(scope="module")
def sample(events: Events, tmp_path_factory: pytest.TempPathFactory) -> Path:
    path = tmp_path_factory.mktemp("sample") / "mb.mdf"
    path.write_bytes(b"".join(encode_record(encode_banks(banks), run=1) for banks in events))
    return path


@pytest.fixture
def reference(events: Events, tmp_path: Path) -> Path:
    for banks in events[:2]:
        write_dump(tmp_path / "dumps", banks, *number_of(banks), Detector.builtin().muon)
    return tmp_path / "dumps"


def validate(sample: Path, *more: object, sequence: str = "forward_then_matching") -> Result:
    arguments = ("validate", sample, "--sequence", sequence, "--threads", 1, *more)
    return CliRunner().invoke(app, [str(argument) for argument in arguments])


def test_the_hits_of_the_dumps_are_found_in_their_event(sample: Path, reference: Path, tmp_path: Path) -> None:
    run = validate(sample, "--reference", reference, "--json", tmp_path / "out.json")
    assert run.exit_code == 0, run.output
    found = json.loads((tmp_path / "out.json").read_text())["reference"]
    assert (found["events"], found["events_without_dump"]) == (2, 1)
    quantities = found["quantities"]
    for name in ("velo_hits", "ut_hits", "scifi_hits", "muon_hits", "muon_ids", "particles"):
        assert quantities[name]["found"] == quantities[name]["total"] > 0, name
    assert quantities["muon_hits"]["differences"]["x"]["largest"] < 0.01
    assert quantities["particles"]["differences"]["p"] == {"unit": "%", "median": 0.0, "largest": 0.0}
    for name in ("velo_tracks", "ut_tracks", "forward_tracks", "true_forward_tracks", "vertices"):
        assert quantities[name]["rate"] > 0.7, name
    assert quantities["forward_tracks"]["differences"]["p"]["median"] < 2
    assert quantities["vertices"]["differences"]["z"]["unit"] == "µm"
    assert f"UT hits{'':51}: {quantities['ut_hits']['found']:7d}/" in run.output


def test_the_report_has_a_table_of_the_comparison(sample: Path, reference: Path, tmp_path: Path) -> None:
    pytest.importorskip("matplotlib", reason="the extra `plot` is not installed")
    report = tmp_path / "out.html"
    run = validate(sample, "--reference", reference, "--report", report, sequence="velo")
    assert run.exit_code == 0, run.output
    page = report.read_text()
    assert "Against the dumps of 2 events" in page
    assert '<th scope="row">VELO hits of its particles</th>' in page


def test_dumps_of_other_events_are_an_error(sample: Path, reference: Path) -> None:
    for path in reference.rglob("*.bin"):
        path.rename(path.with_name("77_" + path.name.partition("_")[2]))
    run = validate(sample, "--reference", reference, sequence="velo")
    assert run.exit_code == 2
    message = run.output.replace("\n", " ")
    assert "the dumps are of other events: they go from run 77 event" in message
    assert "without a dump is run 1 event" in message


@pytest.mark.parametrize("kind", [dumps.BANKS[LhcbBankType.FT_CLUSTER], dumps.MUON_COORDINATES])
def test_a_dump_with_the_name_of_an_event_and_the_hits_of_another_is_an_error(
    sample: Path, reference: Path, events: Events, kind: str
) -> None:
    first, second = (reference / kind / "{}_{}.bin".format(*number_of(banks)) for banks in events[:2])
    shutil.copy(second, first)
    run = validate(sample, "--reference", reference)
    assert run.exit_code == 2
    assert "the dump is that of another event" in run.output.replace("\n", " ")
    assert first.name in run.output.replace("\n", "")


def test_a_folder_without_dumps_is_refused_by_name(sample: Path, tmp_path: Path) -> None:
    run = validate(sample, "--reference", tmp_path, sequence="velo")
    assert run.exit_code == 2
    assert "no dump of events" in run.output


@pytest.mark.physics
def test_the_real_events_agree_with_their_dumps(shared: Path, tmp_path: Path) -> None:
    data = shared / "data"
    run = validate(
        data / "lhcb-minbias-mdf" / "minbias_1f258735_retina3_mc2_ev6001_6007.mdf",
        *("--geometry", data / "lhcb-geometry", "--reference", data / "lhcb-minbias-reference"),
        *("--json", tmp_path / "out.json"),
    )
    assert run.exit_code == 0, run.output
    quantities = json.loads((tmp_path / "out.json").read_text())["reference"]["quantities"]
    for name, n in (("ut_hits", 8002), ("scifi_hits", 24558), ("muon_hits", 1691), ("muon_ids", 1691)):
        assert (quantities[name]["found"], quantities[name]["total"]) == (n, n)
    for name, least in (("velo_hits", 0.97), ("particles", 0.99), ("velo_tracks", 1.0), ("true_forward_tracks", 0.93)):
        assert quantities[name]["rate"] >= least, name
    assert quantities["forward_tracks"]["differences"]["p"]["median"] < 1
    assert quantities["vertices"]["rate"] > 0.9
