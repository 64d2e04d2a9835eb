"""The tuned configuration as a file: the content of the user's file with other cuts."""

from __future__ import annotations

import tomllib
from pathlib import Path

from hltnode.processing.lhcb.lines.menu import HLT1_MENU
from hltnode.processing.selection.configuration.trigger_config import TriggerConfig
from hltnode.processing.selection.tuning.configuration_file import tuned_text

NO_COUNTS: frozenset[tuple[str, str]] = frozenset()


def test_cuts_of_the_menu_are_added_to_those_of_the_file(tmp_path: Path) -> None:
    path = tmp_path / "menu.toml"
    path.write_text(
        """
        [sequence]
        name = "forward"
        [sequence.secondary_vertices_fit_vertices]
        max_chi2 = 9.0
        [conditions]
        beam_x = 0.85
        [menu]
        name = "pp"
        [menu.Hlt1TrackMVA]
        alpha = -160.0
        prefilters = ["both_beams"]
        """
    )
    text = tuned_text(path, path, None, {"Hlt1TrackMVA": {"min_pt": 1e3}, "Hlt1D2KK": {"min_pt": 1.5}}, NO_COUNTS)
    expected = tomllib.loads(path.read_text())
    expected["menu"]["Hlt1TrackMVA"]["min_pt"] = 1e3
    expected["menu"]["Hlt1D2KK"] = {"min_pt": 1.5}
    assert tomllib.loads(text) == expected
    read = TriggerConfig.from_toml(text, HLT1_MENU)
    assert next(line for line in read.types if line.name == "Hlt1TrackMVA").min_pt == 1e3  # type: ignore[attr-defined]


def test_lines_instead_of_the_menu_get_their_cuts_counts_as_whole_numbers(tmp_path: Path) -> None:
    path = tmp_path / "menu.toml"
    path.write_text('[[lines]]\ntype = "VeloMicroBias"\nname = "A"\n[[lines]]\ntype = "VeloMicroBias"\nname = "B"\n')
    text = tuned_text(
        path, path, "velo", {"B": {"min_tracks": 5.0, "postscale": 0.5}}, frozenset({("B", "min_tracks")})
    )
    read = TriggerConfig.from_toml(text, HLT1_MENU)
    assert [getattr(line, "min_tracks", None) for line in read.types] == [1, 5]
    assert (read.sequence, read.types[1].postscale) == ("velo", 0.5)


def test_texts_keys_and_empty_tables_survive(tmp_path: Path) -> None:
    path = tmp_path / "a.toml"
    path.write_text(
        '"odd key\\n" = "say \\"no\\" \\\\ \\u007f é"\nlist = [1, 2.5, true, [], {a = 1}]\n[menu]\n[x.y]\nz = 1\n'
    )
    assert tomllib.loads(tuned_text(path, path, None, {"L": {}}, NO_COUNTS)) == {
        **tomllib.loads(path.read_text()),
        "menu": {"L": {}},
    }


def test_model_files_are_found_from_the_folder_of_the_new_file(tmp_path: Path) -> None:
    path, out = tmp_path / "old" / "menu.toml", tmp_path / "tuned.toml"
    path.parent.mkdir()
    path.write_text('[models]\nmuon_catboost = "models/muons.json"\n')
    assert tomllib.loads(tuned_text(path, out, None, {}, NO_COUNTS)) == {
        "models": {"muon_catboost": "old/models/muons.json"}
    }


def test_line_files_are_found_from_the_folder_of_the_new_file(tmp_path: Path) -> None:
    (tmp_path / "old").mkdir()
    (tmp_path / "new").mkdir()
    (tmp_path / "old" / "mine.py").write_text(
        "from hltnode.processing.lhcb.lines import Line, long_tracks\n"
        'lines = [Line("Hlt1Mine", long_tracks, lambda t: t.chi2 > 1)]\n'
    )
    path, out = tmp_path / "old" / "menu.toml", tmp_path / "new" / "tuned.toml"
    path.write_text('line_files = ["mine.py"]\n')
    out.write_text(tuned_text(path, out, None, {}, NO_COUNTS))
    assert tomllib.loads(out.read_text()) == {"line_files": ["../old/mine.py"]}
    assert "Hlt1Mine" in TriggerConfig.load(out, HLT1_MENU).line_names
