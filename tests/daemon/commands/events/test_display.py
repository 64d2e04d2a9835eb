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
    result = runner.invoke(app, ["display", *map(str, arguments)])
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


def test_a_png_is_one(sample: Path, tmp_path: Path) -> None:
    pytest.importorskip("matplotlib", reason="the extra `plot` is not installed")
    run(sample, "-o", tmp_path / "event.png")
    assert (tmp_path / "event.png").read_bytes().startswith(b"\x89PNG")


@pytest.mark.parametrize(
    ("options", "message"),
    [
        (["--event", 3], "no event 3: it has 3, counted from 0"),
        (["--event-number", 77], "none of its 3 events has number 77"),
        (["--event-number", 2, "--run", 8], "none of its 3 events has number 2 of run 8"),
        (["--run", 1], "--run belongs to --event-number"),
        (["--event", 1, "--event-number", 1], "give one of them"),
    ],
)
def test_an_event_that_is_not_there_is_an_error(
    sample: Path, tmp_path: Path, options: list[object], message: str
) -> None:
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
