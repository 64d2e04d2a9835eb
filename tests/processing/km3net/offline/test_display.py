"""Pictures of sub-slices and of windows that a node kept: hits, colours by time, true muons."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest
from typer.testing import CliRunner

from hltnode.daemon.cli import app
from hltnode.processing.km3net.chain import CHAIN
from hltnode.processing.km3net.offline.display.picture import TRUTH, colours_of, hit_drawing
from hltnode.processing.km3net.offline.simulation.sample import TelescopeOptions, TelescopeSample
from hltnode.processing.km3net.offline.tools import TOOLS
from hltnode.processing.offline.chain_tools import SampleRequest
from hltnode.processing.offline.pages.time_colours import OTHER
from hltnode.protocol.km3net.hit_banks import hits_bank, hits_of
from tests.processing.km3net.telescope_events import made_hits

SAMPLE = TelescopeSample(SampleRequest(seed=3, run=3), TelescopeOptions(muon_rate=40_000.0))


def test_hits_have_the_colour_of_their_time_and_their_place() -> None:
    assert TOOLS.display is not None
    reader = TOOLS.display().reader(CHAIN, None, CHAIN.load_trigger(None))
    *_, banks = SAMPLE.events(4)
    picture = reader.read(banks, "auto")
    seven = [(pmt, 1000 + 20 * i) for i, pmt in enumerate((0, 1, 2, 3, 4, 6, 7))]
    small = reader.read([hits_bank(0, made_hits([*seven, (83, 9000), (200, 1000)]))], "auto")
    reader.close()
    assert len(picture.times) == len(hits_of(banks))
    assert len(picture.candidates) > 0
    assert picture.lines is not None
    assert "Km3netN7" in picture.lines
    drawing = hit_drawing(picture)
    assert drawing.count("stroke-dasharray") == len(picture.muons) == 1
    assert TRUTH in drawing

    assert small.summary == "hits: 8, candidates: 1, windows: 1"
    assert small.flags == ("UNKNOWN_PMT",)
    assert small.span == (500, 2000)
    np.testing.assert_array_equal(small.windows, [[1000 - 3000, 1000 + 3000]])
    colours = colours_of(small)
    assert colours[7] == OTHER
    assert len(set(colours[:7])) == 7
    assert colours_of(replace(small, times=small.times * 0 + 500))[0] == "#440154"
    assert colours_of(replace(small, times=small.times * 0 + 2000))[0] == "#fde725"
    # Each PMT; each hit once in space; each hit with a colour in time.
    assert hit_drawing(small).count("<circle") == 84 + 8 + 7


def test_the_command_writes_html_and_png(tmp_path: Path) -> None:
    pytest.importorskip("matplotlib")
    file = tmp_path / "k.mdf"
    file.write_bytes(SAMPLE.encode_records(3, 1))
    for name, start in (("e.html", b"<!"), ("e.png", b"\x89PNG")):
        done = CliRunner().invoke(app, ["display", str(file), "--chain", "km3net", "-o", str(tmp_path / name)])
        assert done.exit_code == 0, done.output
        assert (tmp_path / name).read_bytes().startswith(start)
    assert "start in ns" in (tmp_path / "e.html").read_text()
