"""The strip or pad of the muon stations for each address of a bank, by the rule of the read-out boards.

A board reads out sectors of one region and quarter, in 192 addresses. A sector is a rectangle of pads: vertical strips
of its whole height (x strips, one to a column of pads), crossed by horizontal ones (y strips, one or two to a row); in
R1 of M4 and M5 its pads are read out individually. All quarters are equal, seen from the beam. M2 equals M3, and M4
equals M5, except for the order of the boards of M2 in a bank.

Sectors and boards: LHCb-TDR-004 (logical layout), LHCb-TDR-014 (nODE boards of 192 channels). The table of the
simulated events of LHCb gave the order of boards and channels (docs/formats/muon-banks.md), the events themselves that
of pad addresses; this module gives every address of both (tests/processing/lhcb/geometry/test_muon_read_out.py).
"""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from hltnode.processing.lhcb.geometry.ideal_muon import N_REGIONS, PAD_GRID, X_STRIP_GRID, Y_STRIP_GRID
from hltnode.protocol.lhcb.banks.muon import ADDRESSES_OF_BANKS, BOARD_ADDRESSES
from hltnode.protocol.lhcb.banks.muon_links import CHANNELS_OF_LINK, MAX_LINKS, N_STREAMS

# Station and quarters of each bank. Quarters: 0 (x > 0, y > 0), 1 (x > 0, y < 0), 2 (x < 0, y < 0), 3 (x < 0, y > 0).
_STATION_OF_BANK = (0, 0, 0, 0, 1, 1, 2, 2, 3, 3)
_QUARTERS_OF_BANK = ((0,), (1,), (2,), (3,), *3 * ((0, 1), (3, 2)))

# Width and height of a sector in pads, by region.
_SIZES_M2_M3 = ((12, 8), (12, 4), (24, 4), (24, 4))
_SIZES_M4_M5 = ((6, 4), (6, 4), (6, 4), (6, 4))

# The boards of a quarter: region 1 to 4, then column and row of each sector in the quarter, a digit each, counted from
# the beam in widths and heights of a sector.
_BOARDS_M3 = (
    "1: 40 50 41 51 01 11",
    "2: 40 50 60 70 41 51 61 71 02 12 22 32",
    "3: 02 12 21 31 20 30",
    "4: 02 12 21 31 20 30",
    "1: 70 60 71 61 31 21",
    "2: 42 52 62 72 43 53 63 73 03 13 23 33",
    "3: 03 13 23 33 22 32",
    "4: 03 13 23 33 22 32",
)
_BOARDS_M2 = tuple(_BOARDS_M3[board] for board in (0, 3, 1, 2, 4, 7, 5, 6))
_BOARDS_M4_M5 = (
    "1: 20 21 31 30 22 23 33 32",
    "3: 20 30 21 31 02 12 22 32 23 33 03 13",
    "4: 20 30 21 31 02 12 22 32 23 33 03 13",
    "1: 02 03 13 12",
    "2: 03 13 02 12 23 33 22 32 21 31 20 30",
)
_BOARDS_OF_STATION = (_BOARDS_M2, _BOARDS_M3, _BOARDS_M4_M5, _BOARDS_M4_M5)

# Channels of a sector of R1, as (x, y) in the sector. M2 and M3: of each pair of y strips the outer one comes first in
# the four rows next to the beam. M4 and M5: the order of the pads.
_Y_STRIPS_R1 = [(x, y) for y in range(8) for x in ((1, 0) if y < 4 else (0, 1))]
_PADS_R1 = [(int(x), y) for y, row in enumerate(("012345", "540123", "321045", "543210")) for x in row]

# Addresses are in groups of eight. If the number of channels of a sector is a multiple of seven, a group has seven
# channels and then a gap.
_ADDRESSES, _CHANNELS = 8, 7

_Grid = tuple[NDArray[np.int64], NDArray[np.int64]]


def tiles_of_addresses() -> tuple[NDArray[np.uint32], ...]:
    """The tile id of each address of each bank, or 0."""
    banks = []
    for bank, n_addresses in enumerate(ADDRESSES_OF_BANKS):
        boards = np.zeros((n_addresses // BOARD_ADDRESSES, BOARD_ADDRESSES), np.uint32)
        for board, sectors in zip(boards, _boards(bank), strict=True):
            tiles = np.concatenate([_with_gaps(sector.channels()) for sector in sectors])
            board[: len(tiles)] = tiles
        banks.append(boards.ravel())
    return tuple(banks)


# Boards of a stream: all that its links can read, in streams of equal size.
_MOST_BOARDS = MAX_LINKS * CHANNELS_OF_LINK // BOARD_ADDRESSES
_LINKS_OF_BOARD = BOARD_ADDRESSES // CHANNELS_OF_LINK


def tiles_of_streams(
    of_addresses: Sequence[NDArray[np.uint32]],
) -> tuple[tuple[NDArray[np.uint32], ...], NDArray[np.uint32]]:
    """The tile id of each channel of each stream of the boards of links, or 0; and the links of each stream, u32[44].

    of_addresses: those of `tiles_of_addresses`.

    A link reads 48 consecutive addresses of a board, four links a board. The streams of a bank share its boards; those
    behind the last bank have no link. The cabling of the real boards is part of a geometry file.
    """
    streams, links = [], []
    for tiles in of_addresses:
        n_boards = len(tiles) // BOARD_ADDRESSES
        n_streams = -(-n_boards // _MOST_BOARDS)
        for of_stream in np.array_split(tiles.reshape(n_boards, BOARD_ADDRESSES), n_streams):
            channels = np.zeros(MAX_LINKS * CHANNELS_OF_LINK, np.uint32)
            channels[: of_stream.size] = of_stream.ravel()
            streams.append(channels)
            links.append(_LINKS_OF_BOARD * len(of_stream))
    unused = N_STREAMS - len(streams)
    streams += [np.zeros(MAX_LINKS * CHANNELS_OF_LINK, np.uint32)] * unused
    return tuple(streams), np.array(links + [0] * unused, np.uint32)


def pads_of_addresses() -> tuple[NDArray[np.uint32], ...]:
    """The tile id of each pad address of each bank: the pads of a bank's sectors in their order, without gaps."""
    return tuple(
        np.concatenate([sector.pads() for sectors in _boards(bank) for sector in sectors])
        for bank in range(len(ADDRESSES_OF_BANKS))
    )


@dataclass(frozen=True, slots=True)
class _Sector:
    """Station, region and quarter from 0; column and row in the quarter."""

    station: int
    region: int
    quarter: int
    column: int
    row: int

    @property
    def _reads_pads(self) -> bool:
        return self.station >= 2 and self.region == 0

    @property
    def _size(self) -> tuple[int, int]:
        """Width and height in pads."""
        return (_SIZES_M2_M3 if self.station < 2 else _SIZES_M4_M5)[self.region]

    @property
    def _turned(self) -> bool:
        """The outer half of a chamber of R1 is cabled like the inner half rotated by 180 degrees."""
        return self.region == 0 and 2 * self.column * self._size[0] // int(PAD_GRID[0][4 * self.station]) % 2 == 1

    def channels(self) -> NDArray[np.uint32]:
        """The tile ids of the sector, in the order of its channels."""
        if self._reads_pads:
            return self._tiles(PAD_GRID, _PADS_R1)
        x_strips = self._tiles(X_STRIP_GRID)
        if self.station >= 2 or self.region >= 2:
            return np.concatenate((x_strips, self._tiles(Y_STRIP_GRID)))
        return np.concatenate((self._tiles(Y_STRIP_GRID, _Y_STRIPS_R1 if self.region == 0 else None), x_strips))

    def pads(self) -> NDArray[np.uint32]:
        """The tile ids of the pads, in order: that of channels, otherwise row by row."""
        if self._reads_pads:
            return self.channels()
        tiles = self._tiles(PAD_GRID)
        # The halves of a rotated row (one y strip each) keep their order.
        return tiles.reshape(8, 2, 6)[:, ::-1].ravel() if self._turned else tiles

    def _tiles(self, grid: _Grid, order: list[tuple[int, int]] | None = None) -> NDArray[np.uint32]:
        """The tile ids of the cells of a grid, in the order given by x and y in the sector, otherwise row by row."""
        layout = N_REGIONS * self.station + self.region
        width, height = self._size
        grid_x, grid_y, pads_x, pads_y = (int(cells[layout]) for cells in (*grid, *PAD_GRID))
        n_x, n_y = width * grid_x // pads_x, height * grid_y // pads_y
        rows = (np.tile(np.arange(n_x), n_y), np.repeat(np.arange(n_y), n_x))
        x, y = np.array(order).T if order else rows
        if self._turned:
            x, y = n_x - 1 - x, n_y - 1 - y
        x, y = x + n_x * self.column, y + n_y * self.row
        ids: NDArray[np.int64] = (
            grid_y << 24 | grid_x << 18 | self.station << 16 | self.region << 14 | self.quarter << 12 | x << 5 | y
        )
        return ids.astype(np.uint32)


def _boards(bank: int) -> Iterator[list[_Sector]]:
    """The sectors of the boards of a bank."""
    station = _STATION_OF_BANK[bank]
    for quarter in _QUARTERS_OF_BANK[bank]:
        for board in _BOARDS_OF_STATION[station]:
            region, _, places = board.partition(": ")
            yield [_Sector(station, int(region) - 1, quarter, *map(int, place)) for place in places.split()]


def _with_gaps(channels: NDArray[np.uint32]) -> NDArray[np.uint32]:
    """The channels of a sector at their addresses: in groups of eight, with gaps."""
    per_eight = _CHANNELS if len(channels) % _CHANNELS == 0 else _ADDRESSES
    eights = np.zeros((-(-len(channels) // per_eight), _ADDRESSES), np.uint32)
    eights[:, :per_eight].flat[: len(channels)] = channels
    return eights.ravel()
