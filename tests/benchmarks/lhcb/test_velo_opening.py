"""The benchmark of openings of the VELO, on few events."""

from __future__ import annotations

from pathlib import Path

import pytest

from benchmarks.lhcb import velo_opening
from benchmarks.measure import Result


@pytest.mark.physics
def test_figures_of_an_open_velo_and_of_an_offset() -> None:
    right, wrong = velo_opening.figures(10.0, n=60), velo_opening.figures(10.0, 0.2, n=60)
    assert right.keys() == wrong.keys()
    assert 0 < right["found by both"] <= 100
    assert abs(right["median of dx of A - C"]) < 60
    assert wrong["median of dx of A - C"] == pytest.approx(-200, abs=80)
    assert velo_opening.cost(10.0, turns=1, n=20).keys() == {"whole sequence", "kernels of halves"}


def test_the_summary_has_every_row() -> None:
    rows = [Result("0 mm, ghosts", 1.5, "%", "truth", None), Result("0 mm, dx of a", 20.0, "um", "truth", None)]
    assert velo_opening.summary(rows) == {"0 mm, ghosts": 1.5, "0 mm, dx of a": 20.0}


def test_rows_have_the_units_of_their_numbers(monkeypatch: pytest.MonkeyPatch) -> None:
    units = {
        "tracks found": "%",
        "found by a": "%",
        "pull in x of a": "",
        "width of pull_z of A - C": "",
        "dx of a": "um",
    }
    monkeypatch.setattr(velo_opening, "figures", lambda *_: dict.fromkeys(units, 1.0))
    monkeypatch.setattr(velo_opening, "cost", lambda _: {"whole sequence": 1.5})
    rows = {row.name: row.unit for row in velo_opening.run(Path())}
    assert {key: rows[f"0 mm, {key}"] for key in units} == units
    assert rows["58 mm, whole sequence"] == ""
    assert len(rows) == len(units) * (7 + 8) + 2
