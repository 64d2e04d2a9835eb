"""hltnode lines."""

from __future__ import annotations

import json
from pathlib import Path

from typer.testing import CliRunner

from hltnode.daemon.cli import app


def test_the_lines_of_a_configuration_are_listed_in_the_order_of_their_bits(tmp_path: Path) -> None:
    trigger, report = tmp_path / "trigger.toml", tmp_path / "lines.json"
    trigger.write_text('[[lines]]\ntype = "Passthrough"\nname = "All"\nprescale = 0.25\n')
    result = CliRunner().invoke(app, ["lines", "--trigger", str(trigger), "--json", str(report)])
    assert result.exit_code == 0, result.output
    assert (
        "    0  All  0.25    1       events              Every event; a prescale makes it a random sample."
        in result.output
    )
    content = json.loads(report.read_text())
    assert content["lines"] == [
        {
            "name": "All",
            "input": "events",
            "prescale": 0.25,
            "postscale": 1.0,
            "description": "Every event; a prescale makes it a random sample.",
        }
    ]


def test_the_fields_of_candidates_are_listed_with_their_units() -> None:
    listed = CliRunner().invoke(app, ["lines", "--fields"])
    assert listed.exit_code == 0, listed.output
    fields = {(row.split()[0], row.split()[1]) for row in listed.output.splitlines() if row.startswith("    ")}
    assert {("pt", "MeV"), ("ip", "mm")} <= fields
    assert "long_tracks: " in listed.output


def test_lines_that_the_sequence_cannot_run_are_listed_with_the_reason() -> None:
    result = CliRunner().invoke(app, ["lines", "--sequence", "velo"])
    assert result.exit_code == 0, result.output
    assert "not available: Hlt1TrackMVA reads long_tracks\n" in result.output
    assert "not available: Hlt1Bs2GammaGamma reads photon_pairs, ecal_clusters\n" in result.output


def test_an_error_in_a_line_of_a_user_names_the_place(tmp_path: Path) -> None:
    (tmp_path / "mine.py").write_text(
        "from hltnode.processing.lhcb.lines import Line, velo_tracks\n"
        'lines = [Line("Mine", velo_tracks, lambda t: t.ipp > 1)]\n'
    )
    (tmp_path / "trigger.toml").write_text('line_files = ["mine.py"]')
    result = CliRunner().invoke(app, ["lines", "--trigger", str(tmp_path / "trigger.toml")])
    assert result.exit_code == 2
    assert "line Mine: field 'ipp': VELO tracks have no such" in " ".join(result.output.split())
    assert "mine.py:2" in result.output
