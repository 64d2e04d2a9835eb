"""Helpers of `make pictures`: terminals, palettes, and pages that are awaited."""

from __future__ import annotations

import sys
from pathlib import Path

import numpy as np
import pytest
from PIL import Image

from hltnode.daemon.commands.demo_processes import free_ports
from tools import take_pictures
from tools.take_pictures import MAX_BYTES, await_page, output_on_terminal, terminal_page, write_small


def test_a_command_sees_a_terminal_of_the_width_and_its_colours_are_kept() -> None:
    code = "import os, sys; print(sys.stdout.isatty(), os.get_terminal_size().columns, '\\x1b[31mred <b>\\x1b[0m')"
    output = output_on_terminal([sys.executable, "-c", code], 77)
    assert output == "True 77 \x1b[31mred <b>\x1b[0m\n"
    page = terminal_page(output, 77)
    assert "red &lt;b&gt;</span>" in page
    assert "\x1b" not in page


def test_a_picture_gets_as_many_colours_as_fit(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    noise = np.random.default_rng(1).integers(0, 256, (300, 300, 3), np.uint8)
    Image.fromarray(noise).save(tmp_path / "raw.png")
    size = write_small(tmp_path / "raw.png", tmp_path / "small.png")
    assert size == (tmp_path / "small.png").stat().st_size < MAX_BYTES
    with Image.open(tmp_path / "small.png") as picture:
        assert len(picture.getcolors() or ()) == 256
    monkeypatch.setattr(take_pictures, "MAX_BYTES", 60_000)
    write_small(tmp_path / "raw.png", tmp_path / "small.png")
    with Image.open(tmp_path / "small.png") as picture:
        assert len(picture.getcolors() or ()) < 256
    monkeypatch.setattr(take_pictures, "MAX_BYTES", 1000)
    with pytest.raises(ValueError, match=r"small\.png: \d+ bytes with 16 colours; the limit is 1000"):
        write_small(tmp_path / "raw.png", tmp_path / "small.png")


@pytest.mark.parametrize(("name", "sample"), [("report-rates", "enriched"), ("event-display", "jpsi")])
def test_a_picture_makes_its_own_sample_alone(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, name: str, sample: str
) -> None:
    made = []
    monkeypatch.setattr(take_pictures.Site, "hltnode", lambda _self, *_arguments, makes: made.append(makes))
    monkeypatch.setattr(take_pictures.Site, "photograph", lambda _self, *_arguments: tmp_path / "raw.png")
    monkeypatch.setattr(take_pictures, "write_small", lambda _raw, _to: 1)
    monkeypatch.setattr(sys, "argv", ["take_pictures", name, "--to", str(tmp_path)])
    take_pictures.main()
    assert [each for each in made if each.endswith(".mdf")] == [f"{sample}.mdf"]


def test_a_page_that_never_comes_is_named(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(take_pictures, "START_SECONDS", 0.1)
    (port,) = free_ports(1)
    with pytest.raises(TimeoutError, match=rf"http://127\.0\.0\.1:{port}/ lacks \('ready',\) after"):
        await_page(f"http://127.0.0.1:{port}/", "ready")
