"""The checker of muons and windows, and the command."""

from __future__ import annotations

import json
from pathlib import Path

import numpy as np
import pytest
from typer.testing import CliRunner

from hltnode.daemon.cli import app
from hltnode.processing.km3net.offline.simulation.sample import (
    TelescopeOptions,
    TelescopeSample,
    sub_slice_banks,
)
from hltnode.processing.km3net.offline.validation.muon_checker import SHIFT, MuonChecker, SliceContent
from hltnode.processing.offline.chain_tools import SampleRequest
from hltnode.protocol.km3net.hit_banks import muons_of

LENGTH = 25_000


def rows(*values: tuple[int, ...], width: int) -> np.ndarray:
    """i64[n, width]."""
    return np.array(values, np.int64).reshape(-1, width)


def test_muons_candidates_and_windows_are_counted_as_by_hand() -> None:
    checker = MuonChecker(time_window=500)
    muons = rows((1000, 1600, 8), (24_900, 25_100, 12), (60_000, 60_100, 3), (80_000, 80_000, 30), width=3)
    candidates = rows((501, 1 | 4), (25_100, 1), (59_500, 1), (80_001, 1), (1000 + SHIFT, 1), width=2)
    windows = rows((-2000, 4000, 1 | 4), (6000, 12_000, 1), (70_000, 79_999, 1), (80_000, 86_000, 64), width=3)
    checker.add(SliceContent(4, LENGTH, muons, candidates, windows))
    checker.add(SliceContent(2, LENGTH, muons[:0], candidates[:0], windows[:0]))
    result = checker.result()
    assert (result["slices"], result["sub_slices"], result["muons"]) == (2, 6, 4)
    assert result["live_time_s"] == pytest.approx(6 * 25e-6)
    assert result["efficiency"] == 0.5
    assert result["efficiency_error"] == 0.25
    assert result["accidental"] == 0.25
    assert result["found_at_borders"] == {"muons": 1, "found": 1}
    assert result["background_rate_hz"] == pytest.approx(2 / 150e-6)
    assert [row["muons"] for row in result["of_hits"]] == [1, 0, 1, 0, 1, 0, 1]
    assert [row["efficiency"] for row in result["of_hits"]] == [0.0, None, 1.0, None, 1.0, None, 0.0]
    assert result["of_triggers"]["sc"]["efficiency"] == 0.25
    assert result["of_triggers"]["n7"]["background_rate_hz"] == pytest.approx(2 / 150e-6)
    assert result["of_triggers"]["causal"]["background_rate_hz"] == 0.0


def test_the_command_finds_muons_and_writes_json_and_page(tmp_path: Path) -> None:
    sample = TelescopeSample(SampleRequest(seed=8, run=3), TelescopeOptions(muon_rate=20_000.0, radius=20.0))
    file = tmp_path / "m.mdf"
    file.write_bytes(sample.encode_records(0, 150))
    options = ["--json", str(tmp_path / "v.json"), "--report", str(tmp_path / "v.html")]
    done = CliRunner().invoke(app, ["validate", str(file), "--chain", "km3net", *options])
    assert done.exit_code == 0, done.output
    text = (tmp_path / "v.json").read_text()
    result = json.loads(text)
    result = result.get("result", result)
    # Each sub-slice once: those at the border of two slices are in both.
    assert result["sub_slices"] == 150
    assert result["muons"] == sum(
        len(true) for i in range(150) if (true := muons_of(sub_slice_banks(sample, i))) is not None
    )
    assert result["muons"] > 50
    assert result["efficiency"] - result["accidental"] > 0.5
    bright = [row for row in result["of_hits"] if row["from"] >= 12 and row["muons"]]
    assert sum(row["efficiency"] * row["muons"] for row in bright) > 0.9 * sum(row["muons"] for row in bright)
    assert "found in %" in done.output
    assert "<h1>Candidates against muons</h1>" in (tmp_path / "v.html").read_text()
