"""Real events for the library, and a configuration whose lines select on the fields of arrays."""

from __future__ import annotations

from pathlib import Path

import awkward as ak
import pytest
from typer.testing import CliRunner

import hltnode
from hltnode.daemon.cli import app

LINES = """
from hltnode.processing.lhcb.lines import *
lines = [
    Line("Hlt1Track", long_tracks, lambda t: t.pt > 2 * GeV),
    Line("Hlt1Pair", two_track_vertices, lambda v: (v.chi2 < 10) & (v.min_pt > 500 * MeV)),
    Line("Hlt1Vertex", primary_vertices, lambda v: v.n_tracks > 60),
    Line("Hlt1Crowded", event, lambda e: e.n_long_tracks > 50),
]
"""
FIELDS = (
    "event.*",
    "decisions.*",
    "primary_vertices.*",
    "long_tracks.*",
    "long_tracks.pv.z",
    "two_track_vertices.*",
    "two_track_vertices.track1.pt",
    "two_track_vertices.track1.qop",
    "two_track_vertices.track2.qop",
    "two_track_vertices.track2.pt",
    "muons.p",
)


@pytest.fixture(scope="session")
def real_events(shared: Path) -> Path:
    return shared / "data/lhcb-minbias-mdf/minbias_1f258735_retina3_mc2_ev6001_6007.mdf"


@pytest.fixture(scope="session")
def trigger(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("lines")
    (folder / "lines.py").write_text(LINES)
    path = folder / "trigger.toml"
    path.write_text('line_files = ["lines.py"]\nlines = []\n[sequence]\nname = "forward_then_matching"\n')
    return path


@pytest.fixture(scope="session")
def arrays(real_events: Path, trigger: Path) -> ak.Array:
    return hltnode.process(real_events, FIELDS, trigger=trigger, backend="cpu", threads=2)


def run(*arguments: object) -> str:
    """The output of a command, which must succeed."""
    result = CliRunner().invoke(app, [str(argument) for argument in arguments])
    assert result.exit_code == 0, result.output
    return result.output
