"""The picture of an event: a bar for each bank, a page without foreign content, and a PNG."""

from __future__ import annotations

import re
from collections.abc import Sequence
from pathlib import Path

import pytest
from typer.testing import CliRunner

from hltnode.daemon.cli import app
from hltnode.processing.raw.chain import CHAIN
from hltnode.processing.raw.offline.display.event_reader import BankPicture
from hltnode.processing.raw.offline.display.html_page import event_page
from hltnode.processing.raw.offline.display.picture import COLOURS, HEIGHT, OTHER, bank_drawing, round_up
from hltnode.processing.raw.offline.tools.display import DISPLAY
from hltnode.processing.selection.configuration.trigger_config import TriggerConfig
from hltnode.protocol.raw_data.mdf import encode_record
from hltnode.protocol.raw_data.odin import Odin, encode_odin
from hltnode.protocol.raw_data.raw_bank import RawBank, encode_banks

BAR = re.compile(r'<rect x="([\d.]+)" y="([\d.]+)" width="[\d.]+" height="([\d.]+)" fill="([^"]+)"/>')


def bank(source: int, kind: int, payload: bytes) -> RawBank:
    return RawBank(kind, 1, source, memoryview(payload))


EVENT = [bank(49152, 200, bytes(400)), bank(7, 192, (1234).to_bytes(8, "little")), bank(49153, 200, bytes(100))]


def picture_of(banks: Sequence[RawBank], configuration: str = "") -> BankPicture:
    """The picture of an event with a trigger configuration."""
    reader = DISPLAY.reader(CHAIN, None, TriggerConfig.from_toml(configuration, CHAIN.menu))
    try:
        return reader.read(banks, "auto")
    finally:
        reader.close()


def bars(drawing: str) -> list[tuple[float, float, str]]:
    """Top, height and colour of the bars, from left to right."""
    found = sorted((float(x), float(y), float(height), colour) for x, y, height, colour in BAR.findall(drawing))
    return [(y, height, colour) for x, y, height, colour in found if x > 50]


def test_bars_are_as_high_as_the_banks_are_large_in_the_order_of_sources() -> None:
    drawn = bars(bank_drawing(picture_of(EVENT)))
    full = HEIGHT - 34
    assert [round(height / full * 400) for _, height, _ in drawn] == [8, 400, 100]
    assert all(y + height == pytest.approx(full, abs=0.2) for y, height, _ in drawn)
    assert [colour for *_, colour in drawn] == [COLOURS[0], COLOURS[1], COLOURS[1]]


def test_the_status_page_gets_the_same_drawing() -> None:
    trigger = TriggerConfig.from_toml("", CHAIN.menu)
    assert CHAIN.picture_maker({}, trigger)(EVENT) == bank_drawing(picture_of(EVENT))


def test_types_beyond_the_colours_share_one() -> None:
    banks = [bank(source, 192 + source, b"x") for source in range(10)]
    drawn = bars(bank_drawing(picture_of(banks)))
    assert [colour for *_, colour in drawn] == [*COLOURS, *[OTHER] * (10 - len(COLOURS))]


def test_an_event_without_banks_has_an_empty_picture() -> None:
    picture = picture_of([])
    assert picture.summary == "0 banks of 0 types, 0 bytes; the largest has 0 bytes"
    assert "MISSING_BANKS" in picture.flags
    assert bars(bank_drawing(picture)) == []


@pytest.mark.parametrize(
    ("size", "end"), [(0, 4), (4, 4), (5, 8), (9, 10), (10, 10), (11, 20), (399, 400), (401, 800), (801, 1000),
                      (65535, 80000)]
)  # fmt: skip
def test_the_axis_ends_at_a_round_number(size: int, end: int) -> None:
    assert round_up(size) == end


def test_the_title_has_the_number_only_where_a_bank_tells_it() -> None:
    named = "[sequence.raw_list_banks]\nnumber_type = 192\n"
    assert picture_of(EVENT).title == "an event without number"
    assert picture_of(EVENT, named).title == "event 1234"
    assert picture_of(EVENT[2:], named).title == "an event without number"
    odin = encode_odin(Odin(run=5, event_id=77))
    assert picture_of([odin, *EVENT], named).title == "run 5, event 77"


def test_the_page_lists_banks_and_lines_and_escapes_names() -> None:
    configuration = '[[lines]]\ntype = "BankCount"\nname = "Three"\nmin_banks = 3\n'
    page = event_page(picture_of(EVENT, configuration), source="<b>.mdf", n_lines=1)
    assert "&lt;b&gt;.mdf" in page
    assert "<li>Three</li>" in page
    assert "<td>49152</td><td>BOARDS 24</td><td>200</td><td>USER 200</td><td>1</td><td>400</td>" in page
    none = event_page(picture_of(EVENT[:1], configuration), source="x", n_lines=1)
    assert "none of 1: the event is not accepted" in none


@pytest.mark.parametrize("suffix", ["html", "png"])
def test_the_command_draws_an_event_of_a_file(suffix: str, tmp_path: Path) -> None:
    if suffix == "png":
        pytest.importorskip("matplotlib")
    file, output = tmp_path / "events.mdf", tmp_path / f"event.{suffix}"
    file.write_bytes(encode_record(encode_banks(EVENT), run=5, checksum=False))
    done = CliRunner().invoke(app, ["display", str(file), "--chain", "raw", "-o", str(output)])
    assert done.exit_code == 0, done.output
    said = " ".join(done.output.split())
    assert "an event without number: 3 banks of 2 types, 508 bytes; the largest has 400 bytes" in said
    assert output.read_bytes()[:4] == (b"<!do" if suffix == "html" else b"\x89PNG")
