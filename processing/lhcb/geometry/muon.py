"""The muon stations M2-M5: from digits to pads, with positions and sizes.

Lengths in mm, global LHCb frame. Conventions of docs/formats/geometry-files.md. A station has four regions around the
beam; a region four quarters; a quarter of a region consists of three blocks in the form of an L, of `grid_x` by
`grid_y` cells; the block at the beam is missing. Pads are read out directly, or as crossings of vertical and horizontal
strips.
"""

from dataclasses import dataclass
from pathlib import Path
from typing import Self

import numpy as np
from numpy.typing import NDArray

from hltnode.processing.lhcb.geometry import ideal_muon, muon_read_out
from hltnode.processing.lhcb.geometry.files import GeometryFile
from hltnode.protocol.lhcb.bank_versions import MuonVersion
from hltnode.protocol.lhcb.banks.muon import ADDRESSES_OF_BANKS, N_BANKS, MuonDigits
from hltnode.protocol.lhcb.banks.muon_links import CHANNELS_OF_LINK, MAX_LINKS, N_STREAMS

GEOMETRY_FILE = "muon_geometry.bin"
TABLES_FILE = "muon_tables.bin"

N_STATIONS = 4
N_REGIONS = 4
N_QUARTERS = 4
N_LAYOUTS = N_STATIONS * N_REGIONS

_N_BOARDS = N_STREAMS // 2
_VERSION = 2
_LARGEST_COORDINATE = 30_000.0
_LARGEST_GRID = 48
_TABLE_NAMES = ("pad", "x strip", "y strip")


@dataclass(frozen=True, slots=True, eq=False)
class MuonTiles:
    """The parts of muon tile ids: `station`, `region`, `quarter`, cell `x` and `y`, cells `grid_x`, `grid_y` of a
    block."""

    station: NDArray[np.int64]
    region: NDArray[np.int64]
    quarter: NDArray[np.int64]
    x: NDArray[np.int64]
    y: NDArray[np.int64]
    grid_x: NDArray[np.int64]
    grid_y: NDArray[np.int64]

    @property
    def layout(self) -> NDArray[np.int64]:
        """4 station + region, the index of a table's grids."""
        return N_REGIONS * self.station + self.region

    def __getitem__(self, index: NDArray[np.int64] | NDArray[np.bool_]) -> "MuonTiles":
        return MuonTiles(*(getattr(self, name)[index] for name in self.__slots__))

    def ids(self) -> NDArray[np.uint32]:
        """The tile ids, the inverse of of_ids."""
        ids = sum(getattr(self, name) << low for name, (low, _) in _TILE_BITS.items())
        return np.asarray(ids, np.int64).astype(np.uint32)

    @classmethod
    def of_ids(cls, ids: NDArray[np.uint32]) -> Self:
        """The parts of tile ids (u32; 0 means no tile)."""
        return cls(**{name: ids.astype(np.int64) >> low & (1 << bits) - 1 for name, (low, bits) in _TILE_BITS.items()})


_TILE_BITS = {
    "y": (0, 5),
    "x": (5, 7),
    "quarter": (12, 2),
    "region": (14, 2),
    "station": (16, 2),
    "grid_x": (18, 6),
    "grid_y": (24, 5),
}


@dataclass(frozen=True, slots=True, eq=False)
class MuonTable:
    """Positions of one kind of cell: pads, x strips or y strips.

    `grid_x`, `grid_y` i32[16] and `offset` u32[16], by 4 station + region; `xyz`: per station f32[n, 3], the middles of
    cells; `size_x`, `size_y` f32: half sizes of the cells of a block of chambers.
    """

    grid_x: NDArray[np.int32]
    grid_y: NDArray[np.int32]
    size_x: NDArray[np.float32]
    size_y: NDArray[np.float32]
    offset: NDArray[np.uint32]
    xyz: tuple[NDArray[np.float32], ...]

    def positions(self, tiles: MuonTiles) -> tuple[NDArray[np.float64], NDArray[np.float64]]:
        """Middles f64[n, 3] and half sizes f64[n, 2] of cells; the tiles must have the grids of the table."""
        layout = tiles.layout
        gx, gy = self.grid_x[layout].astype(np.int64), self.grid_y[layout].astype(np.int64)
        x, y = tiles.x, tiles.y
        beside = y < gy  # in the block beside the beam; the other two blocks are above it
        start = self.offset[layout] + tiles.quarter * 3 * gx * gy
        entry = start + np.where(beside, gx * y + x - gx, gx * gy + 2 * gx * (y - gy) + x)
        block = np.cumsum([0, *(24 * self.grid_y[:-1].astype(np.int64))])[layout] + 6 * tiles.quarter * gy
        block += np.where(beside, 2 * y + 2 * (x - gx) // gx, 4 * y - 2 * gy + 2 * x // gx)
        middles = np.empty((len(x), 3))
        for station, table in enumerate(self.xyz):
            here = tiles.station == station
            middles[here] = table[entry[here]]
        return middles, np.stack((self.size_x[block], self.size_y[block]), axis=1).astype(np.float64)


@dataclass(frozen=True, slots=True, eq=False)
class MuonHits:
    """Muon hits, ordered by station; all arrays [n].

    `x`, `y`, `z` of the middle and `dx`, `dy`, the half sizes, f64, mm; `time` and, of crossed hits, `time_difference`
    in TDC counts; `station`, `region` 0..3; `crossed`: true for a hit of two strips, false for one of a single cell;
    `tile` u32.
    """

    x: NDArray[np.float64]
    y: NDArray[np.float64]
    z: NDArray[np.float64]
    dx: NDArray[np.float64]
    dy: NDArray[np.float64]
    time: NDArray[np.int64]
    time_difference: NDArray[np.int64]
    station: NDArray[np.int64]
    region: NDArray[np.int64]
    crossed: NDArray[np.bool_]
    tile: NDArray[np.uint32]


@dataclass(frozen=True, slots=True, eq=False)
class MuonStreams:
    """A read-out by links: `tile_of_channel`, per stream u32[1152], index 48 link + channel (0: none), and the active
    `links` u32[44] of each stream."""

    tile_of_channel: tuple[NDArray[np.uint32], ...]
    links: NDArray[np.uint32]


@dataclass(frozen=True, slots=True, eq=False)
class MuonGeometry:
    """Read-out and positions of the muon stations.

    `tile_of_address`: per bank u32[n], the tile id of each address (0: none). `pad`, `x_strip`, `y_strip`: tables of
    positions. The x strips divide x finely, the y strips y; a tile with the grid of its region's pads is a pad that is
    read out directly. `links` u32[44]: active links of each stream if banks of links are read out; an address is then
    48 link + channel, a bank is a stream. `streams`: a second read-out, by links, beside that of batches; the built-in
    detector has both.
    """

    tile_of_address: tuple[NDArray[np.uint32], ...]
    pad: MuonTable
    x_strip: MuonTable
    y_strip: MuonTable
    links: NDArray[np.uint32] | None = None
    streams: MuonStreams | None = None

    @property
    def of_links(self) -> MuonStreams | None:
        """The read-out by links, if there is one."""
        return self.streams if self.links is None else MuonStreams(self.tile_of_address, self.links)

    @property
    def read_out(self) -> int:
        """MuonVersion of the banks."""
        return MuonVersion.BATCHES if self.links is None else MuonVersion.LINKS

    @classmethod
    def load(cls, directory: Path | str) -> Self:
        """Read muon_geometry.bin (version 2 or 3) and muon_tables.bin (docs/formats/geometry-files.md).

        Raises GeometryError, which names the file, if one is missing, of the wrong size, or holds impossible values.
        """
        tables = _parse_tables(GeometryFile.read(Path(directory) / TABLES_FILE))
        tiles, links = _parse_read_out(GeometryFile.read(Path(directory) / GEOMETRY_FILE), tables)
        return cls(tiles, *tables, links)

    @classmethod
    def builtin(cls) -> Self:
        """The ideal muon stations, computed from their dimensions (ideal_muon.py), with the real read-out
        (muon_read_out.py)."""
        pad, x_strip, y_strip = (MuonTable(*ideal_muon.table(grid)) for grid in ideal_muon.GRIDS)
        tiles = muon_read_out.tiles_of_addresses()
        streams = MuonStreams(*muon_read_out.tiles_of_streams(tiles))
        return cls(tiles, pad, x_strip, y_strip, streams=streams)

    def address_of_tile(self, tile: NDArray[np.uint32]) -> tuple[NDArray[np.uint32], NDArray[np.uint32]]:
        """The bank and address of each tile, u32 each. Raises ValueError for a tile without read-out."""
        sizes = [len(tiles) for tiles in self.tile_of_address]
        bank = np.repeat(np.arange(len(sizes), dtype=np.uint32), sizes)
        address = np.concatenate([np.arange(len(tiles), dtype=np.uint32) for tiles in self.tile_of_address])
        known = np.concatenate(self.tile_of_address)
        order = np.argsort(known, kind="stable")
        at = np.minimum(np.searchsorted(known[order], tile), len(known) - 1)
        if (known[order][at] != tile).any() or (tile == 0).any():
            raise ValueError("muon: a tile that no address reads out")
        return bank[order][at], address[order][at]

    def hits(self, digits: MuonDigits) -> MuonHits:
        """The hits from the digits of one event: crossings of strips, and cells without a crossing.

        Digits of addresses without a tile are ignored. A strip may be in several crossings.
        """
        tile, time = self._tiles_of(digits)
        tiles = MuonTiles.of_ids(tile)
        fine_x, fine_y = self._strip_grids(tiles)
        is_pad = (tiles.grid_x == self.pad.grid_x[tiles.layout]) & (tiles.grid_y == self.pad.grid_y[tiles.layout])
        is_x_strip = ~is_pad & (tiles.grid_x == fine_x[0]) & (tiles.grid_y == fine_x[1])
        is_y_strip = ~is_pad & ~is_x_strip
        first, second = _crossings(tiles, np.flatnonzero(is_x_strip), np.flatnonzero(is_y_strip), fine_x, fine_y)
        used = np.zeros(len(tile), np.bool_)
        used[first] = used[second] = True
        alone = np.flatnonzero(~used)

        a, b = tiles[first], tiles[second]
        pads = MuonTiles(a.station, a.region, a.quarter, a.x, b.y, a.grid_x, b.grid_y)
        middles, sizes = np.empty((len(first) + len(alone), 3)), np.empty((len(first) + len(alone), 2))
        middles[: len(first)], sizes[: len(first)] = self.pad.positions(pads)
        lone = tiles[alone]
        for table, kind in ((self.pad, is_pad), (self.x_strip, is_x_strip), (self.y_strip, is_y_strip)):
            where = len(first) + np.flatnonzero(kind[alone])
            middles[where], sizes[where] = table.positions(lone[kind[alone]])

        station = np.concatenate((a.station, lone.station))
        order = np.argsort(station, kind="stable")
        none = np.zeros(len(alone), np.int64)
        return MuonHits(
            x=middles[order, 0],
            y=middles[order, 1],
            z=middles[order, 2],
            dx=sizes[order, 0],
            dy=sizes[order, 1],
            time=np.concatenate((time[first], time[alone]))[order],
            time_difference=np.concatenate((time[first] - time[second], none))[order],
            station=station[order],
            region=np.concatenate((a.region, lone.region))[order],
            crossed=order < len(first),
            tile=np.concatenate((pads.ids(), tile[alone]))[order],
        )

    def _tiles_of(self, digits: MuonDigits) -> tuple[NDArray[np.uint32], NDArray[np.int64]]:
        """Tile ids and times of the digits with a tile."""
        sizes = np.array([len(tiles) for tiles in self.tile_of_address], np.int64)
        bank, address = digits.bank.astype(np.int64), digits.address.astype(np.int64)
        inside = address < sizes[bank]
        starts = np.cumsum(sizes) - sizes
        tile = np.concatenate(self.tile_of_address)[starts[bank[inside]] + address[inside]]
        return tile[tile != 0], digits.time[inside][tile != 0].astype(np.int64)

    def _strip_grids(self, tiles: MuonTiles) -> tuple["_Grid", "_Grid"]:
        """The grids of the strips that divide x, and y, more finely, in the regions of the tiles."""
        x_grid = self.x_strip.grid_x[tiles.layout], self.x_strip.grid_y[tiles.layout]
        y_grid = self.y_strip.grid_x[tiles.layout], self.y_strip.grid_y[tiles.layout]
        return x_grid, y_grid


_Grid = tuple[NDArray[np.int32], NDArray[np.int32]]


def _crossings(
    tiles: MuonTiles, x_strips: NDArray[np.int64], y_strips: NDArray[np.int64], fine_x: _Grid, fine_y: _Grid
) -> tuple[NDArray[np.int64], NDArray[np.int64]]:
    """All pairs of an x strip and a y strip of one quarter of a region that cross: indices of both.

    Two strips cross where their cells, coarsened to the other's grid, agree.
    """
    quarter = N_QUARTERS * tiles.layout + tiles.quarter

    def key(chosen: NDArray[np.int64], x: NDArray[np.int64], y: NDArray[np.int64]) -> NDArray[np.int64]:
        return (quarter[chosen] << 7 | x[chosen]) << 5 | y[chosen]

    a = key(x_strips, tiles.x * fine_y[0] // fine_x[0], tiles.y)
    b = key(y_strips, tiles.x, tiles.y * fine_x[1] // fine_y[1])
    order = np.argsort(b, kind="stable")
    low = np.searchsorted(b[order], a, side="left")
    n = np.searchsorted(b[order], a, side="right") - low
    first = np.repeat(x_strips, n)
    within = np.arange(len(first)) - np.repeat(np.cumsum(n) - n, n)
    return first, y_strips[order[np.repeat(low, n) + within]]


def _parse_tables(file: GeometryFile) -> tuple[MuonTable, MuonTable, MuonTable]:
    file.expect_u32("version", _VERSION)
    pad, x_strip, y_strip = (_parse_table(file, name) for name in _TABLE_NAMES)
    file.end()
    return pad, x_strip, y_strip


def _parse_table(file: GeometryFile, name: str) -> MuonTable:
    file.expect_u64(f"{name}: number of gridX", N_LAYOUTS)
    grid_x = file.i32(f"{name}: gridX", N_LAYOUTS)
    file.expect_u64(f"{name}: number of gridY", N_LAYOUTS)
    grid_y = file.i32(f"{name}: gridY", N_LAYOUTS)
    if min(grid_x.min(), grid_y.min()) < 1 or max(grid_x.max(), grid_y.max()) > _LARGEST_GRID:
        raise file.error(f"{name}: a grid is not in 1..{_LARGEST_GRID}")
    n_sizes = 24 * int(grid_y.sum())
    sizes = []
    for column in ("sizeX", "sizeY"):
        file.expect_u64(f"{name}: number of {column}", n_sizes)
        sizes.append(file.f32(f"{name}: {column}", n_sizes, largest=_LARGEST_COORDINATE))
    file.expect_u64(f"{name}: number of offsets", N_LAYOUTS)
    offset = file.u32(f"{name}: offset", N_LAYOUTS)
    cells = 3 * N_QUARTERS * grid_x.astype(np.int64) * grid_y
    file.expect_u64(f"{name}: number of stations", N_STATIONS)
    xyz = []
    for station in range(N_STATIONS):
        of_station = slice(N_REGIONS * station, N_REGIONS * (station + 1))
        n = int(cells[of_station].sum())
        # In the file every station has the room of the largest one.
        n_stored = int(cells.reshape(N_STATIONS, N_REGIONS).sum(axis=1).max()) if name == _TABLE_NAMES[0] else n
        if (offset[of_station] != np.cumsum(cells[of_station]) - cells[of_station]).any():
            raise file.error(f"{name}: offsets of station {station} do not follow its grids")
        file.expect_u64(f"{name}: cells of station {station}", n_stored)
        values = file.f32(f"{name}: positions of station {station}", 3 * n_stored, largest=_LARGEST_COORDINATE)
        xyz.append(values.reshape(n_stored, 3)[:n])
    return MuonTable(grid_x, grid_y, sizes[0], sizes[1], offset, tuple(xyz))


def _parse_read_out(
    file: GeometryFile, tables: tuple[MuonTable, MuonTable, MuonTable]
) -> tuple[tuple[NDArray[np.uint32], ...], NDArray[np.uint32] | None]:
    version = int(file.u32("version", 1)[0])
    if version == MuonVersion.BATCHES:
        links = None
        file.expect_u64("number of banks", N_BANKS)
        banks = []
        for bank, n in enumerate(ADDRESSES_OF_BANKS):
            file.expect_u64(f"addresses of bank {bank}", n)
            banks.append(file.u32(f"tiles of bank {bank}", n))
    elif version == MuonVersion.LINKS:
        # Tiles also contain the stations, regions and quarters of boards and links.
        file.u32("stations of boards", _N_BOARDS)
        links = file.u32("active links", N_STREAMS)
        file.u32("regions of links", N_STREAMS * MAX_LINKS)
        file.u32("quarters of links", N_STREAMS * MAX_LINKS)
        channels = MAX_LINKS * CHANNELS_OF_LINK
        banks = list(file.u32("tiles", N_STREAMS * channels).reshape(N_STREAMS, channels))
        if links.max() > MAX_LINKS:
            raise file.error(f"a stream has {links.max()} active links, at most {MAX_LINKS} are possible")
    else:
        raise file.error(f"version is {version}, expected {MuonVersion.BATCHES:d} or {MuonVersion.LINKS:d}")
    file.end()
    ids = np.concatenate(banks)
    ids = ids[ids != 0]
    tiles = MuonTiles.of_ids(ids)
    grids = [
        (tiles.grid_x == table.grid_x[tiles.layout]) & (tiles.grid_y == table.grid_y[tiles.layout]) for table in tables
    ]
    inside = (tiles.x < 2 * tiles.grid_x) & (tiles.y < 2 * tiles.grid_y)
    at_beam = (tiles.x < tiles.grid_x) & (tiles.y < tiles.grid_y)
    if not (inside & ~at_beam & (grids[0] | grids[1] | grids[2]) & (tiles.ids() == ids)).all():
        raise file.error("a tile is not a strip or pad of its region")
    return tuple(banks), links
