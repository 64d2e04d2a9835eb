"""hltnode simulate: files that it writes, and requests that it refuses."""

import json
import os
import signal
import subprocess
import sys
import time
from collections.abc import Iterator
from pathlib import Path

import pytest
from typer.testing import CliRunner

from hltnode.daemon.cli import app
from hltnode.processing.framework.event_files import read_events
from hltnode.protocol.lhcb.bank_types import LhcbBankType
from hltnode.protocol.lhcb.truth import decode_particles
from hltnode.protocol.raw_data.bank_types import BankType


def simulate(*arguments: str | Path) -> str:
    result = CliRunner().invoke(app, ["simulate", *map(str, arguments)])
    return f"{result.exit_code}: {result.output}"


def test_a_signal_sample_is_written_with_all_detectors_and_truth(tmp_path: Path) -> None:
    file, report = tmp_path / "z.mdf", tmp_path / "z.json"
    assert simulate("--sample", "z", "--nu", "2", "-n", "3", "-o", file, "--json", report).startswith("0:")
    events = list(read_events(file))
    assert len(events) == 3
    for banks in events:
        assert {
            BankType.ODIN,
            LhcbBankType.VP_RETINA_CLUSTER,
            LhcbBankType.UT,
            LhcbBankType.FT_CLUSTER,
            LhcbBankType.MUON,
        } <= {bank.type for bank in banks}
        assert any(particle.from_signal for particle in decode_particles(banks))
    assert json.loads(report.read_text())["sample"] == "z"
    assert sorted(path.name for path in tmp_path.iterdir()) == ["z.json", "z.mdf"]


def test_a_mep_file_holds_the_same_events(tmp_path: Path) -> None:
    options = ("--nu", "1", "-n", "2", "--seed", "7")
    for name in ("a.mdf", "a.mep"):
        assert simulate(*options, "-o", tmp_path / name).startswith("0:")
    mdf, mep = (list(read_events(tmp_path / name)) for name in ("a.mdf", "a.mep"))
    for of_mdf, of_mep in zip(mdf, mep, strict=True):
        assert decode_particles(of_mdf) == decode_particles(of_mep)
        for kind in (LhcbBankType.UT, LhcbBankType.FT_CLUSTER, LhcbBankType.MUON):
            first, second = (
                sorted(bytes(bank.payload) for bank in banks if bank.type == kind) for banks in (of_mdf, of_mep)
            )
            assert first == second


@pytest.mark.process
def test_the_number_of_processes_changes_no_byte(tmp_path: Path) -> None:
    for jobs in ("1", "2"):
        assert simulate("--nu", "0.5", "-n", "130", "--jobs", jobs, "-o", tmp_path / f"{jobs}.mdf").startswith("0:")
    assert (tmp_path / "1.mdf").read_bytes() == (tmp_path / "2.mdf").read_bytes()


def test_the_velo_alone_can_be_simulated(tmp_path: Path) -> None:
    file = tmp_path / "velo.mdf"
    assert simulate("--detectors", "velo", "-n", "2", "-o", file).startswith("0:")
    kinds = {bank.type for banks in read_events(file) for bank in banks}
    assert LhcbBankType.UT not in kinds
    assert LhcbBankType.VP_RETINA_CLUSTER in kinds


@pytest.mark.parametrize(
    ("arguments", "words"),
    [
        (("--nu", "-1", "-o", "x.mdf"), "nu = -1.0"),
        (("--sample", "b2kmumu", "-o", "x.mdf"), "b2kmumu"),
        (("--sample", "z", "--enrich", "-o", "x.mdf"), "only minimum bias can be enriched"),
        (("--enrich", "--input-hepmc", "my.hepmc", "-o", "x.mdf"), "only minimum bias can be enriched"),
        (("--cached", "-o", "x.mdf"), "expected one of -o FILE and --cached"),
        ((), "expected one of -o FILE and --cached"),
        (("-o", "x.root"), "expected a name that ends in .mdf or .mep"),
        (("--geometry", "nowhere", "-o", "x.mdf"), "velo_geometry.bin"),
        (("--input-hepmc", "nowhere.hepmc", "-o", "x.mdf"), "nowhere.hepmc"),
        (("--detectors", "velo", "--sample", "z", "-o", "x.mdf"), "the VELO alone simulates minimum-bias"),
        (("--velo-version", "7", "-o", "x.mdf"), "retina banks of version 7"),
        (("--detectors", "velo", "--polarity", "up", "-o", "x.mdf"), "the VELO alone has no magnet"),
        (("--sample", "z", "--input-hepmc", "my.hepmc", "-o", "x.mdf"), "not from both"),
        (("-o", "no/where/x.mdf"), "x.mdf: there is no folder no/where"),
        (("-o", "x.mdf", "--json", "no/where.json"), "where.json: there is no folder no"),
    ],
)
def test_a_bad_request_is_refused_and_leaves_no_file(
    arguments: tuple[str, ...], words: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    printed = simulate("-n", "2", *arguments)
    assert not printed.startswith("0:")
    assert words in printed
    assert list(tmp_path.iterdir()) == []


def test_a_full_disk_is_reported_and_leaves_no_incomplete_file(tmp_path: Path) -> None:
    (tmp_path / "x.mdf.part").symlink_to("/dev/full")
    printed = simulate("--nu", "1", "-n", "2", "-o", tmp_path / "x.mdf")
    assert printed.startswith("2:")
    assert "x.mdf: cannot be written: No space left on device" in "".join(printed.splitlines())
    assert list(tmp_path.iterdir()) == []


def test_a_cached_sample_is_made_once_and_again_if_options_change_or_it_is_damaged(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path))
    options = ("--detectors", "velo", "--nu", "0.2", "-n", "2", "--cached")
    folder = tmp_path / "hltnode" / "samples"
    assert "from the cache" not in simulate(*options)
    (file,) = folder.glob("*.mdf")
    content = file.read_bytes()
    assert "from the cache" in simulate(*options)
    for other in (("--seed", "2"), ("--nu", "0.3"), ("--velo-banks", "superpixel"), ("--run", "5"), ("--enrich",)):
        assert "from the cache" not in simulate(*options, *other)
    assert len(list(folder.glob("*.mdf"))) == 6
    file.write_bytes(content[:-1])
    assert "from the cache" not in simulate(*options)
    assert file.read_bytes() == content
    assert "6 samples" in simulate("--clear-cache")
    assert list(folder.iterdir()) == []


@pytest.fixture
def ctrl_c_is_not_ignored() -> Iterator[None]:
    """A shell that runs the tests in the background makes them, and all processes that they start, ignore it."""
    former = signal.signal(signal.SIGINT, signal.default_int_handler)
    yield
    signal.signal(signal.SIGINT, former)


@pytest.mark.expensive("starts worker processes that import the simulation")
@pytest.mark.process
@pytest.mark.usefixtures("ctrl_c_is_not_ignored")
@pytest.mark.parametrize(
    ("number", "status", "line"), [(signal.SIGINT, 130, "interrupted"), (signal.SIGTERM, 143, "terminated")]
)
@pytest.mark.parametrize("jobs", ["1", "2"])
def test_a_signal_ends_it_with_a_line_and_without_an_incomplete_file(
    number: signal.Signals, status: int, line: str, jobs: str, tmp_path: Path
) -> None:
    command = (sys.executable, "-m", "hltnode.daemon", "simulate", "-n", "100000", "--nu", "0.5", "--jobs", jobs)
    with subprocess.Popen(
        [*command, "-o", str(tmp_path / "x.mdf")], stderr=subprocess.PIPE, text=True, start_new_session=True
    ) as process:
        try:
            half = tmp_path / "x.mdf.part"
            while not (half.exists() and half.stat().st_size):
                assert process.poll() is None
                time.sleep(0.02)
            # As a terminal does: workers get the signal as well.
            os.killpg(process.pid, number)
            _, printed = process.communicate()
        finally:
            if process.poll() is None:
                os.killpg(process.pid, signal.SIGKILL)
    assert process.returncode == status
    assert printed.strip() == line
    assert list(tmp_path.iterdir()) == []
