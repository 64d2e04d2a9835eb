"""hltnode display: an event of a file as a picture."""

from __future__ import annotations

from pathlib import Path

import pytest
from typer.testing import CliRunner

from hltnode.daemon.cli import app
from hltnode.protocol import encode_banks, encode_record
from tests.processing.lhcb.full_events import full_events

runner = CliRunner()


def run(*arguments: object, code: int = 0) -> str:
    result = runner.invoke(app, ["display", "--force", *map(str, arguments)])
    assert result.exit_code == code, result.output
    return result.output


@pytest.fixture(scope="module")
def sample(tmp_path_factory: pytest.TempPathFactory) -> Path:
    path = tmp_path_factory.mktemp("display") / "all.mdf"
    path.write_bytes(b"".join(encode_record(encode_banks(banks), run=1) for banks in full_events(3, 5)))
    return path


def test_an_event_is_found_by_its_place_and_by_its_number(sample: Path, tmp_path: Path) -> None:
    by_place = run(sample, "--event", 2, "-o", tmp_path / "a.html")
    by_number = run(sample, "--event-number", 2, "--run", 1, "-o", tmp_path / "b.html")
    assert by_place.startswith("run 1, event 2:")
    assert (tmp_path / "a.html").read_text() == (tmp_path / "b.html").read_text()
    assert by_number.splitlines()[:2] == by_place.splitlines()[:2]


def test_an_event_of_a_truncated_file_is_drawn_with_a_warning(sample: Path, tmp_path: Path) -> None:
    cut = tmp_path / "cut.mdf"
    cut.write_bytes(sample.read_bytes()[:-100])
    for event in (0, 1):
        said = run(cut, "--event", event, "-o", tmp_path / "event.html")
        assert f"run 1, event {event}:" in said
        assert "warning: " in said
        assert "are left" in said
    assert "warning" not in run(sample, "-o", tmp_path / "event.html")
    assert "are left" in run(cut, "--event", 2, "-o", tmp_path / "event.html", code=2)


def test_the_output_fits_into_80_columns(sample: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    (tmp_path / "all.mdf").symlink_to(sample)
    for command in (["display", "all.mdf", "-o", "event.html"], ["process", "all.mdf", "--threads", "1"]):
        result = runner.invoke(app, command)
        assert result.exit_code == 0, result.output
        assert [line for line in result.output.splitlines() if len(line) > 80] == []


def test_a_png_file_has_the_png_signature(sample: Path, tmp_path: Path) -> None:
    pytest.importorskip("matplotlib", reason="the extra `plot` is not installed")
    run(sample, "-o", tmp_path / "event.png")
    assert (tmp_path / "event.png").read_bytes().startswith(b"\x89PNG")


@pytest.mark.parametrize(
    ("options", "message"),
    [
        (["--event", 3], "no event 3: the file has 3 events, counted from 0"),
        (["--event-number", 77], "none of its 3 events has number 77"),
        (["--event-number", 2, "--run", 8], "none of its 3 events has number 2 of run 8"),
        (["--run", 1], "expected --event-number with --run"),
        (["--event", 1, "--event-number", 1], "expected only one of --event"),
    ],
)
def test_a_missing_event_is_an_error(sample: Path, tmp_path: Path, options: list[object], message: str) -> None:
    assert message in run(sample, *options, "-o", tmp_path / "event.html", code=2).replace("\n", " ")
    assert not (tmp_path / "event.html").exists()


def test_another_format_is_an_error(sample: Path, tmp_path: Path) -> None:
    assert "one of .html, .png" in run(sample, "-o", tmp_path / "event.gif", code=2)


@pytest.mark.physics
def test_the_real_events_are_drawn(shared: Path, tmp_path: Path) -> None:
    data = shared / "data"
    sample = data / "lhcb-minbias-mdf" / "minbias_1f258735_retina3_mc2_ev6001_6007.mdf"
    for place in (0, 6):
        text = run(sample, "--event", place, "--geometry", data / "lhcb-geometry", "-o", tmp_path / "event.html")
        assert text.startswith(f"run 6718861, event {6001 + place}:")
        assert 200_000 < (tmp_path / "event.html").stat().st_size < 3_000_000
