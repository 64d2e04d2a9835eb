"""The muon geometry."""

from __future__ import annotations

import struct
from pathlib import Path

import numpy as np
import pytest

from hltnode.processing.lhcb.geometry.errors import GeometryError
from hltnode.processing.lhcb.geometry.muon import GEOMETRY_FILE, TABLES_FILE, MuonGeometry, MuonHits, MuonTiles
from hltnode.protocol import RawBank
from hltnode.protocol.lhcb.banks.muon import MuonDigits, batch_of, decode_muon
from tests.processing.lhcb.muon.muon_samples import links_geometry

# Fields of a hit in the reference files, one array per station: all words of 32 bits.
REFERENCE = ("tile", "x", "dx", "y", "dy", "z", "dz", "uncrossed", "time", "time_difference", "cluster_size", "region")


@pytest.fixture(scope="module")
def ideal() -> MuonGeometry:
    return MuonGeometry.builtin()


@pytest.fixture(scope="module")
def real(geometry_files: Path) -> MuonGeometry:
    return MuonGeometry.load(geometry_files)


def write_geometry(directory: Path, geometry: MuonGeometry) -> Path:
    """The geometry in the layout of docs/formats/geometry-files.md."""
    parts = [struct.pack("<IQ", 2, 10)]
    for tiles in geometry.tile_of_address:
        parts += [struct.pack("<Q", len(tiles)), tiles.astype("<u4").tobytes()]
    (directory / GEOMETRY_FILE).write_bytes(b"".join(parts))
    parts = [struct.pack("<I", 2)]
    for table in (geometry.pad, geometry.x_strip, geometry.y_strip):
        names = ("grid_x", "grid_y", "size_x", "size_y", "offset")
        for name, dtype in zip(names, ("<i4", "<i4", "<f4", "<f4", "<u4"), strict=True):
            values = getattr(table, name)
            parts += [struct.pack("<Q", len(values)), values.astype(dtype).tobytes()]
        parts.append(struct.pack("<Q", 4))
        for xyz in table.xyz:
            room = len(geometry.pad.xyz[0]) if table is geometry.pad else len(xyz)
            stored = np.zeros((room, 3), "<f4")
            stored[: len(xyz)] = xyz
            parts += [struct.pack("<Q", room), stored.tobytes()]
    (directory / TABLES_FILE).write_bytes(b"".join(parts))
    return directory


def read_reference(path: Path) -> dict[str, np.ndarray]:
    words = np.fromfile(path, "<u4")
    columns: dict[str, list[np.ndarray]] = {name: [] for name in ("station", *REFERENCE)}
    at = 4
    for station, n in enumerate(words[:4].tolist()):
        block = words[at : at + len(REFERENCE) * n].reshape(len(REFERENCE), n)
        at += block.size
        columns["station"].append(np.full(n, station))
        for name, row in zip(REFERENCE, block, strict=True):
            columns[name].append(row.view("<f4") if name in ("x", "y", "z", "dx", "dy", "dz") else row.view("<i4"))
    assert at == len(words)
    return {name: np.concatenate(parts) for name, parts in columns.items()}


def in_order(columns: dict[str, np.ndarray]) -> np.ndarray:
    return np.lexsort([np.round(columns[name], 1) for name in ("time", "y", "x", "station")])


def test_all_hits_of_the_real_events_are_those_of_the_reference(
    shared: Path, real: MuonGeometry, real_events: list[list[RawBank]]
) -> None:
    n_hits = n_other_height = 0
    for number, event in enumerate(real_events, 6001):
        expected = read_reference(shared / f"data/lhcb-minbias-reference/muon_common_hits/6718861_{number}.bin")
        hits = real.hits(decode_muon(event))
        found = {name: getattr(hits, name) for name in MuonHits.__slots__}
        a, b = in_order(expected), in_order(found)
        for name in ("x", "y", "z", "dx"):
            np.testing.assert_allclose(found[name][b], expected[name][a], atol=0.01)
        for name in ("station", "region", "time"):
            np.testing.assert_array_equal(found[name][b], expected[name][a])
        crossed = found["crossed"][b]
        np.testing.assert_array_equal(~crossed, expected["uncrossed"][a] == 1)
        np.testing.assert_array_equal(found["time_difference"][b][crossed], expected["time_difference"][a][crossed])
        other_height = np.abs(found["dy"][b] - expected["dy"][a]) > 0.01
        assert np.abs(found["dy"][b] - expected["dy"][a]).max() < 1.0
        n_hits += len(a)
        n_other_height += int(other_height.sum())
    # The reference used an older geometry, in which the strip of one hit has another height.
    assert (n_hits, n_other_height) == (1691, 1)


def test_spot_values_of_event_6002(real: MuonGeometry, real_events: list[list[RawBank]]) -> None:
    hits = real.hits(decode_muon(real_events[1]))
    for tile, station, region, crossed, values in (
        (0x8C0486D, 0, 1, True, (857.025, 6.375, 849.022, 31.479, 15207.057)),
        (0x833304A, 3, 0, False, (-86.867, 15.833, 405.566, 19.429, 18724.660)),
    ):
        (i,) = np.flatnonzero(hits.tile == tile)
        assert (hits.station[i], hits.region[i], hits.crossed[i]) == (station, region, crossed)
        assert [getattr(hits, n)[i] for n in ("x", "dx", "y", "dy", "z")] == pytest.approx(values, abs=2e-3)


def test_the_builtin_cells_are_near_those_of_the_real_events(real: MuonGeometry, ideal: MuonGeometry) -> None:
    for name in ("pad", "x_strip", "y_strip"):
        expected, found = getattr(real, name), getattr(ideal, name)
        for column in ("grid_x", "grid_y", "offset"):
            np.testing.assert_array_equal(getattr(found, column), getattr(expected, column))
        np.testing.assert_allclose(found.size_x, expected.size_x, atol=0.25)
        np.testing.assert_allclose(found.size_y, expected.size_y, atol=2.5)
        for a, b in zip(found.xyz, expected.xyz, strict=True):
            assert np.abs(a - b).max(axis=0).tolist() < [0.3, 5.0, 0.05]
            assert (np.abs(a - b).max(axis=0) < [0.3, 5.0, 0.05]).all()


def test_the_real_events_have_the_same_hits_with_the_builtin_geometry(
    real: MuonGeometry, ideal: MuonGeometry, real_events: list[list[RawBank]]
) -> None:
    n_hits = 0
    for event in real_events:
        expected, found = (geometry.hits(decode_muon(event)) for geometry in (real, ideal))
        for name in ("tile", "station", "region", "crossed", "time", "time_difference"):
            np.testing.assert_array_equal(getattr(found, name), getattr(expected, name))
        for name, within in (("x", 0.3), ("y", 5.0), ("z", 0.05), ("dx", 0.25), ("dy", 2.5)):
            np.testing.assert_allclose(getattr(found, name), getattr(expected, name), rtol=0, atol=within)
        n_hits += len(found.tile)
    assert n_hits == 1691


@pytest.mark.parametrize("source", ["ideal", "real"])
def test_digits_written_for_tiles_give_these_tiles(source: str, request: pytest.FixtureRequest) -> None:
    geometry = request.getfixturevalue(source)
    known = np.concatenate(geometry.tile_of_address)
    tiles = np.random.default_rng(5).permutation(known[known != 0])[:500]
    bank, address = geometry.address_of_tile(tiles)
    assert [int(geometry.tile_of_address[b][a]) for b, a in zip(bank, address, strict=True)] == tiles.tolist()
    np.testing.assert_array_equal(MuonTiles.of_ids(tiles).ids(), tiles)


def test_a_tile_without_read_out_has_no_address(ideal: MuonGeometry) -> None:
    for tile in (0, 1, 0xFFFFFFFF):
        with pytest.raises(ValueError, match="no address"):
            ideal.address_of_tile(np.array([tile], np.uint32))


@pytest.mark.parametrize("station", range(4))
@pytest.mark.parametrize("region", range(4))
def test_two_strips_that_cross_are_one_hit_at_their_pad(ideal: MuonGeometry, station: int, region: int) -> None:
    layout = 4 * station + region
    pad_x, pad_y = int(ideal.pad.grid_x[layout]), 8
    for x, y in ((pad_x + 1, 3), (2, 9), (2 * pad_x - 1, 15)):
        strips = []
        for table in (ideal.x_strip, ideal.y_strip):
            gx, gy = int(table.grid_x[layout]), int(table.grid_y[layout])
            cell = (station, region, 2, x * gx // pad_x, y * gy // pad_y, gx, gy)
            strips.append(MuonTiles(*(np.array([value]) for value in cell)).ids())
        tiles = np.unique(np.concatenate(strips))
        bank, address = ideal.address_of_tile(tiles)
        hits = ideal.hits(MuonDigits(bank, batch_of(bank, address), address, np.full(len(tiles), 7, np.uint32)))
        assert len(hits.x) == 1
        assert hits.crossed.tolist() == [len(tiles) == 2]
        pad = MuonTiles(*(np.array([value]) for value in (station, region, 2, x, y, pad_x, pad_y)))
        middle, half_size = ideal.pad.positions(pad)
        assert [hits.x[0], hits.y[0], hits.z[0]] == middle[0].tolist()
        assert [hits.dx[0], hits.dy[0]] == half_size[0].tolist()


def test_addresses_without_a_tile_give_no_hit(ideal: MuonGeometry) -> None:
    digits = MuonDigits(*(np.array([[0, 0], [3, 3], [1535, 4095], [0, 0]], np.uint32)))
    assert len(ideal.hits(digits).x) == 0


def test_a_written_geometry_is_read_back_unchanged(tmp_path: Path, ideal: MuonGeometry) -> None:
    loaded = MuonGeometry.load(write_geometry(tmp_path, ideal))
    for a, b in zip(loaded.tile_of_address, ideal.tile_of_address, strict=True):
        np.testing.assert_array_equal(a, b)
    for name in ("pad", "x_strip", "y_strip"):
        a, b = getattr(loaded, name), getattr(ideal, name)
        for column in ("grid_x", "grid_y", "size_x", "size_y", "offset"):
            np.testing.assert_array_equal(getattr(a, column), getattr(b, column))
        for xyz_a, xyz_b in zip(a.xyz, b.xyz, strict=True):
            np.testing.assert_array_equal(xyz_a, xyz_b)


@pytest.mark.parametrize(
    ("file", "at", "value", "what"),
    [
        (GEOMETRY_FILE, 0, 4, "version is 4, expected 2 or 3"),
        (GEOMETRY_FILE, 4, 11, "number of banks is 11"),
        (GEOMETRY_FILE, 12, 0xFFFFFFFF, "addresses of bank 0"),
        (GEOMETRY_FILE, 20, 0xFFFFFFFF, "not a strip or pad"),
        (GEOMETRY_FILE, 20, 0x88200120, "not a strip or pad"),  # the first tile of bank 0 and an unused bit
        (TABLES_FILE, 0, 1, "version is 1"),
        (TABLES_FILE, 4, 15, "number of gridX is 15"),
        (TABLES_FILE, 12, 0, "grid is not in"),
        (TABLES_FILE, 12, 2, "offsets of station 0"),
        (TABLES_FILE, 156, 0x7FC00000, "sizeX holds a value that is not finite"),
    ],
)
def test_a_file_with_impossible_content_is_named(
    tmp_path: Path, ideal: MuonGeometry, file: str, at: int, value: int, what: str
) -> None:
    path = write_geometry(tmp_path, ideal) / file
    content = bytearray(path.read_bytes())
    struct.pack_into("<I", content, at, value)
    path.write_bytes(content)
    with pytest.raises(GeometryError, match=what) as error:
        MuonGeometry.load(tmp_path)
    assert str(path) in str(error.value)


@pytest.mark.parametrize("file", [GEOMETRY_FILE, TABLES_FILE])
def test_a_file_of_the_wrong_size_is_named(tmp_path: Path, ideal: MuonGeometry, file: str) -> None:
    path = write_geometry(tmp_path, ideal) / file
    path.write_bytes(path.read_bytes()[:-2])
    with pytest.raises(GeometryError, match=file):
        MuonGeometry.load(tmp_path)
    path.unlink()
    with pytest.raises(GeometryError, match=file):
        MuonGeometry.load(tmp_path)


def write_links_geometry(directory: Path, geometry: MuonGeometry) -> Path:
    """A read-out by links in the layout of docs/formats/geometry-files.md."""
    assert geometry.links is not None
    tables = MuonGeometry(MuonGeometry.builtin().tile_of_address, geometry.pad, geometry.x_strip, geometry.y_strip)
    write_geometry(directory, tables)
    words = [np.array([3]), np.zeros(22), geometry.links, np.zeros(2 * 44 * 24), *geometry.tile_of_address]
    (directory / GEOMETRY_FILE).write_bytes(np.concatenate(words).astype("<u4").tobytes())
    return directory


def test_a_written_read_out_by_links_is_read_back_unchanged(tmp_path: Path) -> None:
    loaded = MuonGeometry.load(write_links_geometry(tmp_path, links_geometry()))
    assert loaded.read_out == 3
    np.testing.assert_array_equal(loaded.links, links_geometry().links)
    for a, b in zip(loaded.tile_of_address, links_geometry().tile_of_address, strict=True):
        np.testing.assert_array_equal(a, b)


@pytest.mark.parametrize(("word", "value", "what"), [(23, 25, "25 active links"), (-1, 1, "not a strip or pad")])
def test_a_read_out_by_links_with_impossible_content_is_named(tmp_path: Path, word: int, value: int, what: str) -> None:
    path = write_links_geometry(tmp_path, links_geometry()) / GEOMETRY_FILE
    words = np.fromfile(path, "<u4")
    words[word] = value
    words.tofile(path)
    with pytest.raises(GeometryError, match=what):
        MuonGeometry.load(tmp_path)
