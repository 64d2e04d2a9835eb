"""The cells of the muon stations as kernels see them."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest

from hltnode.processing.lhcb.geometry.errors import GeometryError
from hltnode.processing.lhcb.geometry.muon import MuonGeometry, MuonTiles
from hltnode.processing.lhcb.geometry.muon_cells import MAX_CELLS, NO_CELL, WORD, MuonCells
from hltnode.processing.lhcb.muon.collections import MUON_GEOMETRY


@pytest.fixture(scope="module")
def ideal() -> MuonGeometry:
    return MuonGeometry.builtin()


@pytest.mark.parametrize("source", ["ideal", "real"])
def test_every_tile_is_a_cell_and_ids_rise_inside_each_station(
    source: str, ideal: MuonGeometry, request: pytest.FixtureRequest
) -> None:
    geometry = ideal
    if source == "real":
        folder: Path = request.getfixturevalue("geometry_files")
        geometry = MuonGeometry.load(folder)
    cells = MuonCells.of(geometry)
    channels = np.concatenate(geometry.tile_of_address)
    numbers = cells.cell_of_channel[: len(channels)]
    np.testing.assert_array_equal(numbers == NO_CELL, channels == 0)
    np.testing.assert_array_equal(cells.tile[numbers[channels != 0]], channels[channels != 0])
    for station in range(4):
        of_station = cells.tile[WORD * cells.first_word[station] : WORD * cells.first_word[station + 1]]
        of_station = of_station[of_station != 0].astype(np.int64)
        assert (MuonTiles.of_ids(of_station.astype(np.uint32)).station == station).all()
        assert (np.diff(of_station) > 0).all()


def test_strips_that_cross_a_strip_lie_in_one_word_and_their_pads_between_them(ideal: MuonGeometry) -> None:
    cells = MuonCells.of(ideal)
    for cell in np.random.default_rng(1).choice(np.flatnonzero(cells.rows), 200):
        rows = cells.first_row[cell] + np.arange(cells.rows[cell])
        assert len(np.unique(rows // WORD)) == 1
        x_strip, y_strips = MuonTiles.of_ids(cells.tile[[cell]]), MuonTiles.of_ids(cells.tile[rows])
        for name in ("station", "region", "quarter"):
            assert (getattr(y_strips, name) == getattr(x_strip, name)[0]).all()
        pads = cells.place[cells.first_pad[cell] + np.arange(cells.rows[cell])]
        x, y, _, dx, dy = range(5)
        assert (np.abs(pads[:, x] - cells.place[cell, x]) < cells.place[cell, dx]).all()
        assert (np.abs(pads[:, y] - cells.place[rows, y]) < cells.place[rows, dy]).all()


def test_the_bytes_are_those_of_the_record(ideal: MuonGeometry) -> None:
    cells = MuonCells.of(ideal)
    (record,) = np.frombuffer(cells.to_bytes(), MUON_GEOMETRY.dtype)
    assert (record["n_banks"], record["n_streams"]) == (10, 44)
    np.testing.assert_array_equal(record["cell"]["first_pad"], cells.first_pad)
    np.testing.assert_array_equal(record["place"]["dy"], cells.place[:, 4])
    np.testing.assert_array_equal(record["cell_of_channel"], cells.cell_of_channel)
    assert record["first_channel"][[10, 54]].tolist() == [19_968, 19_968 + 44 * 1152]


def test_strips_that_do_not_divide_each_other_are_refused(ideal: MuonGeometry) -> None:
    grid_y = ideal.y_strip.grid_y.copy()
    grid_y[1] = 7
    tiles = []
    for of_bank in ideal.tile_of_address:
        parts = MuonTiles.of_ids(of_bank)
        changed = (parts.layout == 1) & (parts.grid_y == 8) & (of_bank != 0)
        tiles.append(np.where(changed, (of_bank & ~np.uint32(31 << 24)) | np.uint32(7 << 24), of_bank))
    with pytest.raises(GeometryError, match="layout 1"):
        MuonCells.of(replace(ideal, tile_of_address=tuple(tiles), y_strip=replace(ideal.y_strip, grid_y=grid_y)))


def test_more_cells_than_there_is_room_for_are_refused(ideal: MuonGeometry) -> None:
    parts = MuonTiles(*(np.array([value]) for value in (0, 0, 3, 63 + 62, 31, 63, 31)))
    tile = parts.ids()[0]
    more = [np.array([tile | np.uint32(region << 14)], np.uint32) for region in range(4)]
    assert 4 * 126 * 62 < MAX_CELLS < 8 * 126 * 62
    with pytest.raises(GeometryError, match="more than"):
        MuonCells.of(replace(ideal, tile_of_address=tuple(more)))
