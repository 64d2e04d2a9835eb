"""Downstream tracks as rows of a tuple, and as candidates of a line."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pandas as pd

from tests.analysis.conftest import run

NAMES = ("x", "y", "tx", "ty", "qop", "p", "pt", "eta", "phi", "is_positive", "chi2", "seed_chi2")
ALSO = ("ghost_probability", "n_scifi_hits")
LINE = """
from hltnode.processing.lhcb.lines import GeV, Line, downstream_tracks

lines = [Line("Hlt1Downstream", downstream_tracks, lambda t: (t.p > 9 * GeV) & t.is_positive & (t.eta > 3.0))]
"""
TRIGGER = 'lines = []\nline_files = ["lines.py"]\n[sequence]\nname = "hlt1_2026"\n'


def test_lines_and_tuples_have_the_fields_of_downstream_tracks(real_events: Path, tmp_path: Path) -> None:
    (tmp_path / "lines.py").write_text(LINE)
    (tmp_path / "trigger.toml").write_text(TRIGGER)
    path = tmp_path / "tracks.parquet"
    fields = ",".join([*(f"downstream_tracks.{name}" for name in (*NAMES, *ALSO)), "decisions.Hlt1Downstream"])
    command = ("process", real_events, "--trigger", tmp_path / "trigger.toml", "--backend", "cpu")
    run(*command, "--tuple", path, "--fields", fields, "--rows", "downstream_tracks")
    frame = pd.read_parquet(path)
    frame.columns = frame.columns.str.removeprefix("downstream_tracks_")
    assert len(frame) > 20
    slope2 = frame.tx.astype(float) ** 2 + frame.ty.astype(float) ** 2
    np.testing.assert_allclose(frame.p, 1 / np.abs(frame.qop), rtol=1e-5)
    np.testing.assert_allclose(frame.pt, frame.p * np.sqrt(slope2 / (1 + slope2)), rtol=1e-5)
    np.testing.assert_allclose(frame.eta, np.arcsinh(1 / np.sqrt(slope2)), rtol=1e-4)
    np.testing.assert_allclose(frame.phi, np.arctan2(frame.ty, frame.tx), atol=1e-5)
    np.testing.assert_array_equal(frame.is_positive, frame.qop > 0)
    assert frame.chi2.between(0, 12).all()
    assert frame.seed_chi2.between(0, 40).all()
    assert frame.ghost_probability.between(0, 0.6).all()
    assert frame.n_scifi_hits.between(9, 12).all()
    assert (np.abs(frame.x) < 900).all()
    assert (np.abs(frame.y) < 750).all()
    selected = (frame.p > 9000) & frame.is_positive & (frame.eta > 3.0)
    expected = selected.groupby(frame.event_index).transform("any")
    assert 0 < expected.sum() < len(frame)
    np.testing.assert_array_equal(frame.decisions_Hlt1Downstream, expected)
