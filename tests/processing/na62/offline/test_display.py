"""Pictures of events: hits, rings and truth as HTML and PNG."""

from __future__ import annotations

from pathlib import Path

import numpy as np
from typer.testing import CliRunner

from hltnode.daemon.cli import app
from hltnode.processing.na62.chain import CHAIN
from hltnode.processing.na62.offline.display.picture import ring_drawing
from hltnode.processing.na62.offline.simulation.sample import DecayName, RichOptions, RichSample, encode_block
from hltnode.processing.na62.offline.tools import TOOLS
from hltnode.processing.na62.rich.pmt_positions import PMTS_OF_SPOT
from hltnode.processing.offline.chain_tools import SampleRequest
from hltnode.protocol.na62.rich_banks import HIT, MAX_HITS, hits_bank

SAMPLE = RichSample(SampleRequest(seed=8, run=3), RichOptions(decay=DecayName.TRACKS, tracks=2, accidentals=0.0))


def test_an_event_is_drawn_with_its_hits_rings_and_truth() -> None:
    assert TOOLS.display is not None
    reader = TOOLS.display().reader(CHAIN, None, CHAIN.load_trigger(None))
    (banks,) = SAMPLE.events(1)
    picture = reader.read(banks, "auto")
    refused = reader.read([hits_bank(np.zeros(MAX_HITS + 1, HIT))], "auto")
    reader.close()
    assert picture.summary == f"{len(banks[0].payload) // 3} hits, 2 rings; 2 true rings"
    assert picture.lines is not None
    assert "RichSeveralRings" in picture.lines
    drawing = ring_drawing(picture)
    assert drawing.count("<circle") == PMTS_OF_SPOT + len(picture.pmts) + 4
    assert drawing.count("stroke-dasharray") == 2
    assert (refused.flags, refused.summary) == (("TOO_MANY_RICH_HITS",), "0 hits, 0 rings")


def test_the_command_writes_html_and_png(tmp_path: Path) -> None:
    file = tmp_path / "r.mdf"
    file.write_bytes(encode_block(SAMPLE, 0, 1))
    for name, start in (("e.html", b"<!"), ("e.png", b"\x89PNG")):
        done = CliRunner().invoke(app, ["display", str(file), "--chain", "na62_rich", "-o", str(tmp_path / name)])
        assert done.exit_code == 0, done.output
        assert (tmp_path / name).read_bytes().startswith(start)
    assert "radius in mm" in (tmp_path / "e.html").read_text()
