"""The muon stations for kernels: numbers of strips and pads, crossings of strips, positions of cells.

A cell is a tile that is read out: a strip, or a pad that is read directly. Cells are numbered so that in each station
their tile ids ascend, and so that the y strips that cross an x strip are consecutive: a few bits of a bit map of all
cells give the crossings of a quarter. Crossed pads have places behind the cells.
"""

from dataclasses import dataclass
from typing import Self

import numpy as np
from numpy.typing import NDArray

from hltnode.processing.lhcb.geometry.errors import GeometryError
from hltnode.processing.lhcb.geometry.muon import (
    N_LAYOUTS,
    N_QUARTERS,
    N_REGIONS,
    N_STATIONS,
    MuonGeometry,
    MuonTable,
    MuonTiles,
)
from hltnode.protocol.lhcb.banks.muon import ADDRESSES_OF_BANKS, N_BANKS
from hltnode.protocol.lhcb.banks.muon_links import CHANNELS_OF_LINK, MAX_LINKS, N_STREAMS

MAX_CELLS = 32768
MAX_PLACES = MAX_CELLS + 61440
"""Cells and crossed pads."""
MAX_CHANNELS = sum(ADDRESSES_OF_BANKS) + N_STREAMS * MAX_LINKS * CHANNELS_OF_LINK
"""Addresses of all banks of batches and all streams."""
N_SOURCES = N_BANKS + N_STREAMS
NO_CELL = 0xFFFF
WORD = 32
"""Bits of a word of the bit map. A station begins at a new word; the strips that cross a strip are in one word."""


@dataclass(frozen=True, slots=True, eq=False)
class MuonCells:
    """Read-out, numbers, crossings and positions of the cells.

    `n_banks` of batches, 10 or 0; `n_streams`, 44 or 0; `first_channel` u32[55], of the 10 banks and 44 streams, and
    `cell_of_channel` u16: the cell of each address, NO_CELL for none; `links` u32[44], of streams;
    `first_word` u32[5]: words of the bit map by station; of
    cells `tile` u32, `rows`: number of y strips that cross it, from `first_row` on, with pads from `first_pad` on;
    `place` f32[MAX_PLACES, 5]: x, y, z, dx, dy in mm.
    """

    n_banks: int
    n_streams: int
    first_channel: NDArray[np.uint32]
    cell_of_channel: NDArray[np.uint16]
    links: NDArray[np.uint32]
    first_word: NDArray[np.uint32]
    tile: NDArray[np.uint32]
    rows: NDArray[np.uint32]
    first_row: NDArray[np.uint32]
    first_pad: NDArray[np.uint32]
    place: NDArray[np.float32]

    @classmethod
    def of(cls, geometry: MuonGeometry) -> Self:
        """Number the cells. Raises GeometryError for grids that the kernels do not support."""
        of_banks = geometry.tile_of_address if geometry.links is None else ()
        of_links = geometry.of_links
        of_streams = of_links.tile_of_channel if of_links is not None else ()
        channels = np.concatenate((*of_banks, *of_streams))
        n_sources = [N_BANKS - len(of_banks), N_STREAMS - len(of_streams)]
        sizes = [*map(len, of_banks), *[0] * n_sources[0], *map(len, of_streams), *[0] * n_sources[1]]
        tile, first_word = _number(channels)
        rows, first_row, first_pad = (np.zeros(MAX_CELLS, np.uint32) for _ in range(3))
        place = np.zeros((MAX_PLACES, 5), np.float32)
        cells = np.flatnonzero(tile)
        tiles = MuonTiles.of_ids(tile[cells])
        kinds = [_has_grids(table, tiles) for table in (geometry.pad, geometry.x_strip, geometry.y_strip)]
        kinds[1] &= ~kinds[0]
        kinds[2] &= ~kinds[0]
        for table, kind in zip((geometry.pad, geometry.x_strip, geometry.y_strip), kinds, strict=True):
            place[cells[kind]] = np.hstack(table.positions(tiles[kind]))
        next_pad = MAX_CELLS
        for layout in range(N_LAYOUTS):
            x_strips, y_strips = (np.flatnonzero(kind & (tiles.layout == layout)) for kind in kinds[1:])
            if not len(x_strips) or not len(y_strips):
                continue
            next_pad += _cross(
                geometry, layout, tiles, cells, x_strips, y_strips, (rows, first_row, first_pad), place, next_pad
            )
        # Tile ids have 28 bits: a table of all of them costs half a second at the start of a node.
        by_tile = cells[np.argsort(tile[cells])]
        connected = np.flatnonzero(channels)
        cell_of_channel = np.full(MAX_CHANNELS, NO_CELL, np.uint16)
        cell_of_channel[connected] = by_tile[np.searchsorted(tile[by_tile], channels[connected])]
        links = np.zeros(N_STREAMS, np.uint32) if of_links is None else of_links.links
        return cls(
            n_banks=len(of_banks),
            n_streams=len(of_streams),
            first_channel=np.concatenate(([0], np.cumsum(sizes))).astype(np.uint32),
            cell_of_channel=cell_of_channel,
            links=links,
            first_word=first_word,
            tile=tile,
            rows=rows,
            first_row=first_row,
            first_pad=first_pad,
            place=place,
        )

    def to_bytes(self) -> bytes:
        """For the kernels: the record muon_geometry (processing/lhcb/muon/collections.py)."""
        crossing = np.stack([self.tile, self.rows, self.first_row, self.first_pad], axis=1)
        parts = (
            np.array([self.n_banks, self.n_streams], "<u4"),
            self.first_channel.astype("<u4"),
            self.links.astype("<u4"),
            self.first_word.astype("<u4"),
            crossing.astype("<u4"),
            self.place.astype("<f4"),
            self.cell_of_channel.astype("<u2"),
        )
        return b"".join(part.tobytes() for part in parts)


def _number(channels: NDArray[np.uint32]) -> tuple[NDArray[np.uint32], NDArray[np.uint32]]:
    """The tile of each cell (0 for an unused number), and the first word of each station."""
    tile = np.zeros(MAX_CELLS, np.uint32)
    first_word = np.zeros(N_STATIONS + 1, np.uint32)
    known = np.unique(channels[channels != 0])
    tiles = MuonTiles.of_ids(known)
    cell = 0
    for station in range(N_STATIONS):
        first_word[station] = cell // WORD
        # A section has the cells of one grid in one region, in all quarters; holes at the beam are also numbered.
        section = tiles.grid_y << 16 | tiles.grid_x << 8 | tiles.region
        for number in np.unique(section[tiles.station == station]).tolist():
            chosen = (tiles.station == station) & (section == number)
            of_section = tiles[chosen]
            columns, lines = 2 * int(of_section.grid_x[0]), 2 * int(of_section.grid_y[0])
            size = N_QUARTERS * columns * lines
            if cell + size > MAX_CELLS:
                raise GeometryError(f"the muon stations have more than {MAX_CELLS} strips and pads")
            tile[cell + (of_section.quarter * columns + of_section.x) * lines + of_section.y] = known[chosen]
            cell += -(-size // WORD) * WORD
    first_word[N_STATIONS] = cell // WORD
    return tile, first_word


def _has_grids(table: MuonTable, tiles: MuonTiles) -> NDArray[np.bool_]:
    in_x, in_y = tiles.grid_x == table.grid_x[tiles.layout], tiles.grid_y == table.grid_y[tiles.layout]
    return np.asarray(in_x & in_y, np.bool_)


def _cross(
    geometry: MuonGeometry,
    layout: int,
    tiles: MuonTiles,
    cells: NDArray[np.int64],
    x_strips: NDArray[np.int64],
    y_strips: NDArray[np.int64],
    of_cells: tuple[NDArray[np.uint32], NDArray[np.uint32], NDArray[np.uint32]],
    place: NDArray[np.float32],
    next_pad: int,
) -> int:
    """Fill `rows`, `first_row`, `first_pad` of the x strips of a region, and the places of their pads from `next_pad`
    on; returns the number of pads."""
    fine_x, fine_y = tiles[x_strips], tiles[y_strips]
    gx1, gy1, gx2, gy2 = (int(g[0]) for g in (fine_x.grid_x, fine_x.grid_y, fine_y.grid_x, fine_y.grid_y))
    if gx1 % gx2 or gy2 % gy1 or WORD % (2 * gy2):
        raise GeometryError(f"muon layout {layout}: strips of {gx1} x {gy1} and {gx2} x {gy2} do not cross in a word")
    # First cell in the section of the y strips, computed back from one of its strips.
    begin = cells[y_strips[0]] - ((fine_y.quarter[0] * 2 * gx2 + fine_y.x[0]) * 2 * gy2 + fine_y.y[0])
    n_rows = gy2 // gy1
    first = begin + (fine_x.quarter * 2 * gx2 + fine_x.x * gx2 // gx1) * 2 * gy2 + fine_x.y * n_rows
    order = np.argsort(cells[x_strips], kind="stable")
    pads = next_pad + n_rows * np.argsort(order)
    n_pads = n_rows * len(x_strips)
    if next_pad + n_pads > MAX_PLACES:
        raise GeometryError(f"the muon stations have more than {MAX_PLACES - MAX_CELLS} pads of crossed strips")
    rows, first_row, first_pad = of_cells
    rows[cells[x_strips]], first_row[cells[x_strips]], first_pad[cells[x_strips]] = n_rows, first, pads
    within = np.tile(np.arange(n_rows), len(x_strips))
    x, y = np.repeat(fine_x.x, n_rows), np.repeat(fine_x.y * n_rows, n_rows) + within
    n = len(x)
    station, region = divmod(layout, N_REGIONS)
    pad = MuonTiles(
        station=np.full(n, station),
        region=np.full(n, region),
        quarter=np.repeat(fine_x.quarter, n_rows),
        x=x,
        y=y,
        grid_x=np.full(n, gx1),
        grid_y=np.full(n, gy2),
    )
    if not _has_grids(geometry.pad, pad).all():
        raise GeometryError(f"muon layout {layout}: strips cross in pads of {gx1} x {gy2}, the table has others")
    place[np.repeat(pads, n_rows) + within] = np.hstack(geometry.pad.positions(pad))
    return n_pads
