"""Lines of users: Python files and packages named in a trigger configuration, and changes of the menu."""

from __future__ import annotations

from pathlib import Path

import pytest

from hltnode.processing.lhcb.chain import CHAIN
from hltnode.processing.lhcb.lines.menu import HLT1_MENU
from hltnode.processing.selection.configuration.trigger_config import TriggerConfig
from hltnode.processing.selection.errors import TriggerConfigError

MINE = """\
from hltnode.processing.lhcb.lines import GeV, Line, long_tracks, mm

lines = [
    Line("Hlt1Mine", long_tracks, lambda t: (t.pt > 1.5 * GeV) & (t.ip > 0.1 * mm), postscale=0.5, description="Mine."),
]
"""


def loaded(folder: Path, trigger: str, lines: str = MINE, sequence: str | None = "forward") -> TriggerConfig:
    (folder / "my_lines.py").write_text(lines)
    (folder / "trigger.toml").write_text(trigger)
    return CHAIN.load_trigger(folder / "trigger.toml", sequence)


def test_lines_of_a_file_stand_behind_the_menu(tmp_path: Path) -> None:
    trigger = loaded(tmp_path, 'line_files = ["my_lines.py"]')
    assert trigger.line_names == (*(line.name for line in HLT1_MENU.lines), "Hlt1Mine")
    assert (trigger.lines[-1].postscale, trigger.lines[-1].description) == (0.5, "Mine.")


def test_lines_of_a_file_may_stand_alone(tmp_path: Path) -> None:
    assert loaded(tmp_path, 'lines = []\nline_files = ["my_lines.py"]').line_names == ("Hlt1Mine",)


def test_a_changed_cut_changes_the_key_and_a_changed_comment_does_not(tmp_path: Path) -> None:
    text = 'lines = []\nline_files = ["my_lines.py"]'
    sequence = CHAIN.with_sequence("forward").sequence
    key = loaded(tmp_path, text).tck(sequence)
    assert loaded(tmp_path, text, "# lines\n" + MINE).tck(sequence) == key
    assert loaded(tmp_path, text, MINE.replace("0.1", "0.11")).tck(sequence) != key


def test_a_document_runs_without_the_file_of_its_lines(tmp_path: Path) -> None:
    trigger = loaded(tmp_path, 'line_files = ["my_lines.py"]')
    document = CHAIN.document(trigger)
    (tmp_path / "my_lines.py").unlink()
    (tmp_path / "trigger.json").write_text(document.text)
    again = CHAIN.load_trigger(tmp_path / "trigger.json")
    assert CHAIN.document(again) == document
    assert again.line_table().tobytes() == trigger.line_table().tobytes()


@pytest.mark.parametrize(
    ("lines", "message"),
    [
        (
            MINE.replace("t.pt", "t.ppt"),
            r"my_lines\.py: line Hlt1Mine: field 'ppt': .* nearest are .*pt.*\(my_lines\.py:4\)",
        ),
        (MINE.replace(" * GeV", ""), r"line Hlt1Mine: > with MeV and no unit: .* \(my_lines\.py:4\)"),
        (
            MINE.replace("0.5,", "5,"),
            r"line Hlt1Mine: postscale: a number from 0 to 1 is expected, not 5 \(my_lines\.py:4\)",
        ),
        (
            MINE.replace("GeV, ", ""),
            r"my_lines\.py: line Hlt1Mine: NameError: name 'GeV' .* \(my_lines\.py:4\)",
        ),
        ("lines = [", r"my_lines\.py: SyntaxError: "),
        ("import sys\nsys.exit(0)", r"my_lines\.py: SystemExit: 0 \(my_lines\.py:2\)"),
        ("line = 3", r"my_lines\.py: a list of lines named 'lines' is expected"),
        ("lines = 3", r"my_lines\.py: a list of lines is expected, not 3"),
        ("lines = [3]", r"my_lines\.py: a list of lines is expected, it contains 3"),
        (
            MINE.replace("Hlt1Mine", "Hlt1TrackMVA"),
            r"two lines have the name 'Hlt1TrackMVA', made at \w+\.py:\d+ and my_lines\.py:4",
        ),
    ],
)
def test_errors_in_a_file_name_it_and_the_place(tmp_path: Path, lines: str, message: str) -> None:
    with pytest.raises(TriggerConfigError, match=message):
        loaded(tmp_path, 'line_files = ["my_lines.py"]', lines)


@pytest.mark.parametrize(
    ("trigger", "message"),
    [
        ('line_files = "my_lines.py"', r"line_files: a list of names is expected"),
        ('line_files = ["other.py"]', r"line_files\[0\]: .*other\.py: cannot be read"),
        ('line_packages = ["other"]', r"line_packages\[0\]: no installed package offers 'other'"),
        ("menu = 3", r"menu: a table of lines"),
        (
            "[menu.Hlt1TrackMVAA]\nalpha = 1.0",
            r"menu\.Hlt1TrackMVAA: the menu has no such line; the nearest are Hlt1TrackMVA",
        ),
        ("[menu.Hlt1TrackMVA]\nalfa = 1.0", r"menu\.Hlt1TrackMVA\.alfa: .* the nearest is alpha"),
        ("[menu.Hlt1TrackMVA]\nname = 'A'", r"menu\.Hlt1TrackMVA: a table of cuts and scales"),
        ("[menu.Hlt1TrackMVA]\nprescale = 2.0", r"menu\.Hlt1TrackMVA\.prescale: .* less than or equal to 1"),
        ("lines = []\n[menu.Hlt1TrackMVA]\nalpha = 1.0", r"menu: .* replace the menu"),
    ],
)
def test_errors_in_the_configuration_name_the_key(tmp_path: Path, trigger: str, message: str) -> None:
    with pytest.raises(TriggerConfigError, match=message):
        loaded(tmp_path, trigger)


def test_the_configuration_changes_cuts_and_scales_of_the_menu_and_nothing_else(tmp_path: Path) -> None:
    changed = loaded(tmp_path, "[menu.Hlt1TrackMVA]\nalpha = -160.0\npostscale = 0.5")
    default = CHAIN.load_trigger(None, "forward")
    assert changed.line_names == default.line_names
    differing = [new.name for new, old in zip(changed.lines, default.lines, strict=True) if new != old]
    assert differing == ["Hlt1TrackMVA"]


def test_a_line_of_a_user_that_the_sequence_cannot_run_is_refused(tmp_path: Path) -> None:
    message = r"line Hlt1Mine: it reads long_tracks, which sequence velo does not make"
    with pytest.raises(TriggerConfigError, match=message):
        loaded(tmp_path, 'line_files = ["my_lines.py"]', sequence="velo")


def test_an_installed_package_offers_lines(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    (tmp_path / "lines_of_a_package.py").write_text(MINE)
    metadata = tmp_path / "mine-1.0.dist-info"
    metadata.mkdir()
    (metadata / "METADATA").write_text("Metadata-Version: 2.1\nName: mine\nVersion: 1.0\n")
    (metadata / "entry_points.txt").write_text("[hltnode.lines]\nmine = lines_of_a_package:lines\n")
    monkeypatch.syspath_prepend(tmp_path)
    trigger = loaded(tmp_path, 'lines = []\nline_packages = ["mine"]')
    assert trigger.line_names == ("Hlt1Mine",)
