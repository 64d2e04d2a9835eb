"""Pictures of sub-slices and of windows that a node kept: hits, colours by time, tracks, true decays."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest
from typer.testing import CliRunner

from hltnode.daemon.cli import app
from hltnode.processing.mu3e.chain import CHAIN
from hltnode.processing.mu3e.detector_constants import MEV_PER_MM
from hltnode.processing.mu3e.offline.display.event_reader import BACKWARDS, CURVE_POINTS, HitPicture, track_curves
from hltnode.processing.mu3e.offline.display.picture import FOUND, VIEWS, hit_drawing
from hltnode.processing.mu3e.offline.simulation.flight import fly
from hltnode.processing.mu3e.offline.simulation.sample import PixelOptions, PixelSample, SampleName
from hltnode.processing.mu3e.offline.tools import TOOLS
from hltnode.processing.mu3e.tracks.collections import TRACK
from hltnode.processing.offline.chain_tools import SampleRequest
from hltnode.processing.offline.pages.time_colours import OTHER, time_colours
from hltnode.protocol.mu3e.hit_banks import HIT, hits_bank, hits_of

SAMPLE = PixelSample(
    SampleRequest(seed=3, run=3),
    PixelOptions(sample=SampleName.SIGNAL, spacing=1, muon_rate=1e7, efficiency=1.0),
)


def test_a_sub_slice_with_a_vertex_has_its_tracks_and_the_true_decay() -> None:
    assert TOOLS.display is not None
    reader = TOOLS.display().reader(CHAIN, None, CHAIN.load_trigger(None))
    pictures = [(reader.read(banks, "auto"), banks) for banks in SAMPLE.events(12)]
    bad = np.array([(5, 10, 10, 20, 1), (4000, 1, 1, 30, 1), (5, 250, 1, 40, 1), (5, 1, 250, 50, 1)], HIT)
    small = reader.read([hits_bank(0, bad)], "auto")
    reader.close()
    for picture, banks in pictures:
        assert len(picture.times) == len(hits_of(banks))
        assert len(picture.true) == 1
    picture = next(each for each, _ in pictures if len(each.vertices))
    near = np.linalg.norm(picture.vertices - picture.true, axis=1)
    assert near.min() < 3.0
    assert len(picture.curves) >= 3
    assert picture.lines is not None
    assert "Mu3eVertex" in picture.lines
    drawing = hit_drawing(picture)
    assert drawing.count("<svg viewBox") == len(VIEWS) + 1 + 3
    assert drawing.count('r="5"') == len(VIEWS) * len(picture.vertices)
    assert drawing.count(f'<g fill="none" stroke="{FOUND}"><path') == len(VIEWS)

    assert small.summary == "1 hit, 0 vertices, 0 windows"
    assert {"UNKNOWN_SENSOR", "BAD_COLUMN", "BAD_ROW"} <= set(small.flags)
    assert small.span == (20, 21)


def test_curves_of_tracks_are_the_helices_of_the_simulation() -> None:
    """A track through the first crossing of a particle meets the second one."""
    momentum = np.array([[20.0, 10.0, 5.0], [20.0, 10.0, 5.0]])
    charge = np.array([1, -1])
    made = fly(np.random.default_rng(1), np.zeros((2, 3)), momentum, charge, scatter=False)
    tracks = np.zeros(2, TRACK.dtype)
    for i in range(2):
        first, third = (made.place[(made.particle == i) & (made.layer == layer)][0] for layer in (0, 2))
        # The momentum has turned on the way from the origin: by the angle of the chord, twice.
        radius = np.hypot(20.0, 10.0) / MEV_PER_MM
        turn = -charge[i] * 2.0 * np.arcsin(np.hypot(*first[:2]) / (2.0 * radius))
        px, py = 20.0 * np.cos(turn) - 10.0 * np.sin(turn), 20.0 * np.sin(turn) + 10.0 * np.cos(turn)
        values = {"x": first[0], "y": first[1], "z": first[2], "px": px, "py": py, "pz": 5.0, "charge": charge[i]}
        for name, value in values.items():
            tracks[name][i] = value
        curve = track_curves(tracks[i : i + 1])[0]
        assert curve.shape == (CURVE_POINTS, 3)
        # Points are half a turn over 60 apart, so the nearest one is at most half of that away.
        step = np.linalg.norm(np.diff(curve, axis=0), axis=1).max()
        assert np.linalg.norm(curve - third, axis=1).min() < 0.6 * step
        assert np.linalg.norm(curve, axis=1).min() < 0.6 * step < BACKWARDS


def test_a_window_of_a_node_is_drawn_without_vertices() -> None:
    picture = HitPicture(
        times=np.array([0, 10]),
        places=np.array([[23.3, 0.0, 1.0], [29.8, 0.0, 2.0]]),
        windows=np.array([[0, 60]]),
        vertices=np.empty((0, 3)),
        curves=np.empty((0, CURVE_POINTS, 3)),
        vertex_rows=(),
        true=np.empty((0, 3)),
        title="window",
        flags=(),
        lines=None,
    )
    assert picture.summary == "2 hits in 60 ns"
    assert hit_drawing(picture).count("<circle") == 2 * len(VIEWS) + 5


def test_times_have_colours_from_the_first_to_the_last_one_of_the_span() -> None:
    assert time_colours(np.array([9, 10, 20, 21]), (10, 20)) == [OTHER, "#440154", "#fde725", OTHER]


def test_the_command_writes_html_and_png(tmp_path: Path) -> None:
    pytest.importorskip("matplotlib")
    file = tmp_path / "k.mdf"
    file.write_bytes(SAMPLE.encode_records(3, 1))
    for name, start in (("e.html", b"<!"), ("e.png", b"\x89PNG")):
        done = CliRunner().invoke(app, ["display", str(file), "--chain", "mu3e", "-o", str(tmp_path / name)])
        assert done.exit_code == 0, done.output
        assert (tmp_path / name).read_bytes().startswith(start)
    assert "sum of momenta in MeV/c" in (tmp_path / "e.html").read_text()
