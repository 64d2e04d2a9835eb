"""Text of others does not act on a terminal."""

from __future__ import annotations

import io

import pytest
from rich.table import Table

from hltnode.daemon.commands.terminal import echo, shown
from hltnode.daemon.commands.text_console import TextConsole

HOSTILE = "name\x1b]0;title\x07\x9b31m\r\x7f\u202e\ud800"
VISIBLE = r"name\x1b]0;title\x07\x9b31m\r\x7f\u202e\ud800"


def test_hidden_characters_are_escapes_and_all_others_stay() -> None:
    assert shown(HOSTILE) == VISIBLE
    for text in ("two\nlines\tand a tab", "µ ± Δ é 名", ""):
        assert shown(text) == text


def test_a_printed_line_has_no_hidden_characters(capsys: pytest.CaptureFixture[str]) -> None:
    echo(HOSTILE)
    assert capsys.readouterr().out == VISIBLE + "\n"


def test_a_console_shows_them_in_lines_titles_and_cells_and_takes_no_markup_of_data() -> None:
    stream = io.StringIO()
    console = TextConsole(file=stream, width=200, markup=False)
    console.print(HOSTILE)
    table = Table("head" + HOSTILE, title="title" + HOSTILE)
    table.add_row("[red]" + HOSTILE)
    console.print(table)
    text = stream.getvalue()
    assert text.count(VISIBLE) == 4
    assert "[red]" in text
    assert not set(text) & {"\x1b", "\x07", "\r", "\x9b"}
