"""Pictures of a slice: clusters, links, seeds and tracks as HTML and PNG."""

from __future__ import annotations

import json
from pathlib import Path

import numpy as np
from typer.testing import CliRunner

from hltnode.daemon.cli import app
from hltnode.processing.alice.chain import CHAIN
from hltnode.processing.alice.geometry.tpc_geometry import FILE_NAME, builtin_geometry
from hltnode.processing.alice.offline.display.figure import slice_figure
from hltnode.processing.alice.offline.display.picture import COLOURS, slice_drawing
from hltnode.processing.alice.offline.simulation.sample import TpcOptions, TpcSample, encode_block, event_of
from hltnode.processing.alice.offline.tools import TOOLS
from hltnode.processing.offline.chain_tools import SampleRequest
from hltnode.protocol.alice.tpc_banks import (
    CLUSTER,
    N_ROWS,
    TPC_VERSION,
    TpcBankType,
    banks_of_clusters,
    places_of_clusters,
    slice_of_source,
    tpc_source,
)
from hltnode.protocol.raw_data.mdf import iter_records
from hltnode.protocol.raw_data.raw_bank import RawBank

SAMPLE = TpcSample(SampleRequest(seed=8, run=3), TpcOptions(pile_up=0.0))
EVENT = event_of(SAMPLE, 0)


def test_the_fullest_slice_is_drawn_with_clusters_links_seeds_and_tracks() -> None:
    assert TOOLS.display is not None
    (record,) = iter_records(encode_block(SAMPLE, 0, [EVENT]))
    banks = record.banks()
    reader = TOOLS.display().reader(CHAIN, None, CHAIN.load_trigger(None))
    picture = reader.read(banks, "auto")
    empty = reader.read([bank._replace(payload=memoryview(b"")) for bank in banks_of_clusters(banks)], "auto")
    reader.close()
    of_slice = np.bincount(EVENT.slice_number, minlength=36)
    assert picture.slice_number == of_slice.argmax()
    mine = EVENT.clusters[EVENT.slice_number == picture.slice_number]
    np.testing.assert_allclose(np.sort(picture.y), np.sort(places_of_clusters(mine)[0]), atol=1e-9)
    np.testing.assert_allclose(np.sort(picture.drift), np.sort(places_of_clusters(mine)[1]), atol=1e-9)
    assert picture.n_clusters == len(EVENT.clusters)
    # Links join rows that are two apart; deleted ones are not among those that were kept.
    rows = np.unique(picture.x)
    row = np.searchsorted(rows, picture.x)
    assert len(picture.links) > 0
    assert len(picture.deleted_links) > 0
    for links in (picture.links, picture.deleted_links):
        assert ((picture.x[links[:, 1]] - picture.x[links[:, 0]]) < 5.0).all()
        assert (row[links[:, 1]] > row[links[:, 0]]).all()
    kept = set(map(tuple, picture.links.tolist()))
    assert not kept & set(map(tuple, picture.deleted_links.tolist()))
    # A seed begins a chain of links.
    starts, ends = set(picture.links[:, 0].tolist()), set(picture.links[:, 1].tolist())
    assert set(picture.seeds.tolist()) <= starts - ends
    # Each cluster belongs to one tracklet; most tracks have the clusters of one.
    in_tracklets = np.concatenate(picture.tracklets)
    assert len(np.unique(in_tracklets)) == len(in_tracklets)
    of = {int(cluster): i for i, tracklet in enumerate(picture.tracklets) for cluster in tracklet}
    shares = [
        np.unique([of.get(c, -1) for c in track.tolist()], return_counts=True)[1].max() / len(track)
        for track in picture.tracks
    ]
    assert np.median(shares) > 0.9
    assert len(picture.tracks) > 0
    for track in picture.tracks:
        assert len(track) >= 10
        assert (np.diff(picture.x[track]) > 0).all()
        assert np.abs(np.diff(picture.y[track])).max() < 10.0
    (legend,) = slice_figure(picture, "a file").legends
    assert [text.get_text() for text in legend.get_texts()] == list(COLOURS)
    drawing = slice_drawing(picture)
    assert all(f"</svg>{name}</li>" in drawing for name in COLOURS)
    # Deleted links are grey, and lie below all that was kept.
    assert drawing.index(f'stroke="{COLOURS["deleted links"]}"') < drawing.index(f'stroke="{COLOURS["links"]}"')
    assert drawing.count("h0") == 2 * (len(picture.x) + len(picture.seeds))
    assert (len(empty.x), len(empty.tracks), empty.n_clusters) == (0, 0, 0)
    assert "h0" not in slice_drawing(empty)
    sources = {slice_of_source(bank.source_id) for bank in banks_of_clusters(banks)}
    assert picture.slice_number in sources


def test_clusters_that_the_chain_does_not_use_are_not_drawn() -> None:
    """A cluster of no row, and a row with too many, both in the fullest slice."""
    assert TOOLS.display is not None
    n = 65536
    clusters = np.zeros(n + 20, CLUSTER)
    clusters["row"], clusters["y"], clusters["z"] = 80, np.arange(n + 20) % 30000 + 18000, 20000
    clusters["row"][:20], clusters["y"][:20] = np.arange(20), 32768
    clusters["row"][19] = N_ROWS
    banks = [
        RawBank(TpcBankType.CLUSTERS, TPC_VERSION, tpc_source(5, part // 8, part % 8), memoryview(chunk.tobytes()))
        for part, chunk in enumerate(np.array_split(clusters, 9))
    ]
    reader = TOOLS.display().reader(CHAIN, None, CHAIN.load_trigger(None))
    picture = reader.read(banks, "auto")
    small = reader.read([banks[0]._replace(payload=memoryview(clusters[:20].tobytes()))], "auto")
    reader.close()
    for shown, flags, used in ((picture, ("BAD_CLUSTER", "ROW_TOO_FULL"), n + 20), (small, ("BAD_CLUSTER",), 20)):
        assert shown.flags == flags
        assert (len(shown.x), len(shown.y), shown.slice_number, shown.n_clusters) == (19, 19, 5, used)
        np.testing.assert_allclose(shown.x, builtin_geometry().row_x[:19], rtol=1e-6)
        assert len(shown.tracks) == 1
        assert slice_drawing(shown).count("h0") == 2 * (19 + len(shown.seeds))


def test_a_slice_is_chosen_by_an_option_and_its_rows_are_those_of_the_geometry(tmp_path: Path) -> None:
    geometry = builtin_geometry()
    (tmp_path / FILE_NAME).write_text(
        json.dumps(
            {
                "row_x": (geometry.row_x + 2.0).tolist(),
                "pad_width": geometry.pad_width.tolist(),
                "pad_length": geometry.pad_length.tolist(),
                "half_length": 249.7,
                "field": [5.0, 0.0, 0.0],
            }
        )
    )
    file, page = tmp_path / "t.mdf", tmp_path / "s.html"
    file.write_bytes(encode_block(SAMPLE, 0, [EVENT]))
    arguments = ["display", str(file), "--chain", "alice_tpc", "-o", str(page), "--geometry", str(tmp_path)]
    done = CliRunner().invoke(app, [*arguments, "--slice", "7"])
    assert done.exit_code == 0, done.output
    assert "slice 7" in done.output
    n = int((EVENT.slice_number == 7).sum())
    assert f"{n} clusters of {len(EVENT.clusters)}" in " ".join(done.output.split())
    drawing = page.read_text()
    assert "M87.19" in drawing or "M87.20" in drawing
    assert "M85.19" not in drawing
    assert CliRunner().invoke(app, [*arguments, "--slice", "36"]).exit_code == 2


def test_the_status_page_draws_the_fullest_slice() -> None:
    (record,) = iter_records(encode_block(SAMPLE, 0, [EVENT]))
    trigger = CHAIN.load_trigger(None)
    draw = CHAIN.picture_maker(CHAIN.load_geometry(None), trigger)
    assert TOOLS.display is not None
    reader = TOOLS.display().reader(CHAIN, None, trigger)
    picture = reader.read(record.banks(), "auto")
    reader.close()
    assert draw(record.banks()) == slice_drawing(picture)
    assert len(draw(record.banks())) < 4_000_000


def test_the_command_writes_html_and_png(tmp_path: Path) -> None:
    file = tmp_path / "t.mdf"
    file.write_bytes(encode_block(SAMPLE, 0, [EVENT]))
    for name, start in (("e.html", b"<!"), ("e.png", b"\x89PNG")):
        done = CliRunner().invoke(app, ["display", str(file), "--chain", "alice_tpc", "-o", str(tmp_path / name)])
        assert done.exit_code == 0, done.output
        assert (tmp_path / name).read_bytes().startswith(start)
    assert "x of the first in cm" in (tmp_path / "e.html").read_text()
