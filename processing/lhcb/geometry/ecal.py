"""The electromagnetic calorimeter: cells, neighbours, gains and read-out, from ecal_geometry.bin or built in
(docs/formats/geometry-files.md)."""

from dataclasses import dataclass
from pathlib import Path
from typing import Self

import numpy as np
from numpy.typing import NDArray

from hltnode.processing.lhcb.geometry import ideal_ecal
from hltnode.processing.lhcb.geometry.files import GeometryFile
from hltnode.processing.lhcb.geometry.ideal_ecal import (
    BOARDS_OF_SOURCE,
    CHANNELS_OF_CARD,
    FIRST_CELLS,
    N_CELLS,
    N_NEIGHBOURS,
    NO_CELL,
)

GEOMETRY_FILE = "ecal_geometry.bin"

CARDS_VERSION = 3
"""Cards have codes, as in banks EcalPacked."""
BOARDS_VERSION = 4
"""Each source has three boards, as in banks Calo."""
BOTH_READ_OUTS = CARDS_VERSION | BOARDS_VERSION
"""The built-in calorimeter: its cards have codes and are boards of sources. The bits of both versions differ."""
MAX_CARDS = 256
N_SOURCES = 256
NO_CARD = 0xFFFF
EMPTY_SLOT = 9999
"""Index of a slot without a board in version 4."""
N_PLANES = 3

_LARGEST_COORDINATE = 20000.0  # mm
_LARGEST_GAIN = 10000.0  # MeV per count


@dataclass(frozen=True, slots=True, eq=False)
class EcalGeometry:
    """Cells and read-out of the calorimeter.

    `read_out`: CARDS_VERSION, BOARDS_VERSION or BOTH_READ_OUTS. `code_offset`: code of card 0. `cell_of_channel`
    u16[cards, 32]: cell of each channel, NO_CELL for none (a light-emitting diode). `connected` bool[cards]: False for
    a code that no card has. `neighbours` u16[6016, 9], NO_CELL for none. `centre` f32[6016, 2] in mm, `gain` f32[6016]
    in MeV per count,
    `pedestal` in counts. `to_local` f32[3, 4]: rotation and translation to the frame of the calorimeter, mm. `planes`
    f32[3, 4]: front, shower maximum, back as a x + b y + c z + d = 0. `module_size` in mm. `boards` i32[sources, 3]:
    number of the board in each slot, 0 for none, and `board_cards`: its card, EMPTY_SLOT for none (both None without
    boards).
    """

    read_out: int
    code_offset: int
    cell_of_channel: NDArray[np.uint16]
    connected: NDArray[np.bool_]
    neighbours: NDArray[np.uint16]
    centre: NDArray[np.float32]
    gain: NDArray[np.float32]
    pedestal: float
    to_local: NDArray[np.float32]
    planes: NDArray[np.float32]
    module_size: float
    boards: NDArray[np.int32] | None = None
    board_cards: NDArray[np.int32] | None = None

    @classmethod
    def builtin(cls) -> Self:
        """The ideal calorimeter, with both read-outs."""
        channels = ideal_ecal.channels()
        cards = ideal_ecal.board_cards()
        return cls(
            read_out=BOTH_READ_OUTS,
            code_offset=ideal_ecal.CODE_OFFSET,
            cell_of_channel=channels,
            connected=np.ones(len(channels), np.bool_),
            neighbours=ideal_ecal.neighbours(),
            centre=ideal_ecal.centres(),
            gain=ideal_ecal.gains(),
            pedestal=ideal_ecal.PEDESTAL,
            to_local=ideal_ecal.to_local(),
            planes=ideal_ecal.planes(),
            module_size=ideal_ecal.MODULE_SIZE,
            boards=np.where(cards < 0, 0, cards + 1).astype(np.int32),
            board_cards=np.where(cards < 0, EMPTY_SLOT, cards).astype(np.int32),
        )

    @classmethod
    def load(cls, directory: Path | str) -> Self:
        """Read ecal_geometry.bin of a directory.

        Raises GeometryError, which names the file, if it is missing, of another version, of the wrong size, or holds
        impossible values.
        """
        file = GeometryFile.read(Path(directory) / GEOMETRY_FILE)
        version = int(file.u32("version", 1)[0])
        if version not in (CARDS_VERSION, BOARDS_VERSION):
            raise file.error(f"version is {version}, expected {CARDS_VERSION} or {BOARDS_VERSION}")
        code_offset = int(file.u32("code offset", 1)[0])
        file.expect_u32("channels of a card", CHANNELS_OF_CARD)
        file.expect_u32("number of cells", N_CELLS)
        pedestal = float(file.f32("pedestal", 1, largest=1000.0)[0])
        channels, connected = _read_channels(file)
        file.expect_u32("number of neighbours", N_NEIGHBOURS * N_CELLS)
        neighbours = file.u16("neighbours", N_NEIGHBOURS * N_CELLS).reshape(N_CELLS, N_NEIGHBOURS)
        _check_neighbours(file, neighbours)
        file.expect_u32("number of coordinates", 2 * N_CELLS)
        centre = file.f32("x and y", 2 * N_CELLS, largest=_LARGEST_COORDINATE).reshape(N_CELLS, 2)
        file.expect_u32("number of gains", N_CELLS)
        gain = file.f32("gain", N_CELLS, largest=_LARGEST_GAIN)
        if (gain <= 0.0).any():
            raise file.error("gain holds a value that is not positive")
        file.expect_u32("size of the matrix", 12)
        to_local = file.f32("matrix", 12, largest=_LARGEST_COORDINATE).reshape(3, 4)
        file.expect_u32("numbers of the planes", 4 * N_PLANES)
        planes = file.f32("planes", 4 * N_PLANES, largest=_LARGEST_COORDINATE).reshape(N_PLANES, 4)
        if (np.abs(planes[:, 2]) < 0.5).any():
            raise file.error("planes holds one that is not perpendicular to the beam")
        module_size = float(file.f32("module size", 1, largest=1000.0)[0])
        if module_size < 1.0:
            raise file.error(f"module size is {module_size:g} mm, at least 1 is possible")
        file.expect_u32("number of regions", len(FIRST_CELLS))
        for expected in FIRST_CELLS:
            file.expect_u32("first cell of a region", expected)
        boards = board_cards = None
        if version == BOARDS_VERSION:
            boards, board_cards = _read_boards(file, connected)
        file.end()
        return cls(
            read_out=version,
            code_offset=code_offset,
            cell_of_channel=channels,
            connected=connected,
            neighbours=neighbours,
            centre=centre,
            gain=gain,
            pedestal=pedestal,
            to_local=to_local,
            planes=planes,
            module_size=module_size,
            boards=boards,
            board_cards=board_cards,
        )

    def to_frame(
        self, x: NDArray[np.float64], y: NDArray[np.float64], z: float | NDArray[np.float64]
    ) -> tuple[NDArray[np.float64], NDArray[np.float64]]:
        """x and y (mm) in the frame of the calorimeter of places (mm) in LHCb's frame."""
        first, second = (row[0] * x + row[1] * y + row[2] * z + row[3] for row in self.to_local[:2].astype(np.float64))
        return first, second

    def cells_of(self, x: NDArray[np.float64], y: NDArray[np.float64]) -> NDArray[np.int64]:
        """The cells of places (mm) in the frame of the calorimeter, N_CELLS outside of it, i64."""
        found = np.full(np.shape(x), N_CELLS, np.int64)
        for first, (half_x, half_y, hole_x, hole_y, divided) in zip(FIRST_CELLS, ideal_ecal.REGIONS, strict=False):
            column, row = (np.floor(place / self.module_size * divided).astype(np.int64) for place in (x, y))
            beside = (row >= -hole_y) & (row < hole_y)
            inside = (column >= -half_x) & (column < half_x) & (row >= -half_y) & (row < half_y)
            inside &= ~(beside & (column >= -hole_x) & (column < hole_x))
            rows_of_hole = np.clip(row + hole_y, 0, 2 * hole_y)
            cell = first + 2 * half_x * (row + half_y) + column + half_x - 2 * hole_x * rows_of_hole
            found = np.where(inside, cell - np.where(beside & (column >= hole_x), 2 * hole_x, 0), found)
        return found

    def file_bytes(self) -> bytes:
        """The content of an ecal_geometry.bin with this geometry; of both read-outs, the file has that of cards."""
        has_boards = self.read_out == BOARDS_VERSION
        # A code that no card has is written as a card whose channels all have cell 0, as LHCb writes it.
        channels = np.where(self.cell_of_channel == NO_CELL, N_CELLS, self.cell_of_channel)
        channels[~self.connected] = 0
        version = BOARDS_VERSION if has_boards else CARDS_VERSION
        numbers = [version, self.code_offset, CHANNELS_OF_CARD, N_CELLS]
        parts = [np.array(numbers, "<u4"), np.array([self.pedestal], "<f4")]
        for values, dtype in (
            (channels, "<u2"),
            (self.neighbours, "<u2"),
            (self.centre, "<f4"),
            (self.gain, "<f4"),
            (self.to_local, "<f4"),
            (self.planes, "<f4"),
        ):
            parts += [np.array([values.size], "<u4"), values.astype(dtype)]
        parts += [np.array([self.module_size], "<f4"), np.array([len(FIRST_CELLS), *FIRST_CELLS], "<u4")]
        for lists in (self.boards, self.board_cards):
            if has_boards and lists is not None:
                parts += [np.array([lists.size], "<u4"), lists.astype("<i4")]
        return b"".join(part.tobytes() for part in parts)

    def slot_cards(self) -> NDArray[np.uint16]:
        """u16[256, 3]: the card in each slot of each source, NO_CARD for an empty slot or a source without cards."""
        cards = np.full((N_SOURCES, BOARDS_OF_SOURCE), NO_CARD, np.uint16)
        if self.boards is not None and self.board_cards is not None:
            used = (self.boards != 0) & (self.board_cards != EMPTY_SLOT)
            cards[: len(used)][used] = self.board_cards[used]
        return cards

    def sines(self) -> NDArray[np.float32]:
        """f32[6016]: sine of the angle between the beam and the line from the origin to each cell, at the plane of the
        shower maximum. Single precision in each step, so that the bits are those of a kernel."""
        x, y = self.centre.T.astype(np.float32)
        a, b, c, d = self.planes[1].astype(np.float32)
        z, radius2 = -(a * x + b * y + d) / c, x * x + y * y
        sines: NDArray[np.float32] = np.sqrt(radius2 / (radius2 + z * z))
        return sines

    def to_bytes(self) -> bytes:
        """For the kernels: the record ecal_geometry (processing/lhcb/calorimeter/collections.py)."""
        n_cards = len(self.cell_of_channel)
        channels = np.full((MAX_CARDS, CHANNELS_OF_CARD), NO_CELL, np.uint16)
        channels[:n_cards] = self.cell_of_channel
        is_card = np.zeros(MAX_CARDS, np.uint8)
        is_card[:n_cards] = self.connected
        parts = (
            np.array([self.read_out, self.code_offset, n_cards], "<u4"),
            np.array([self.pedestal, self.module_size], "<f4"),
            self.to_local.astype("<f4"),
            self.planes.astype("<f4"),
            self.centre.T.astype("<f4"),
            self.gain.astype("<f4"),
            self.neighbours.astype("<u2"),
            channels.astype("<u2"),
            self.slot_cards().astype("<u2"),
            is_card,
            self.sines().astype("<f4"),
        )
        return b"".join(np.ascontiguousarray(part).tobytes() for part in parts)


def _read_channels(file: GeometryFile) -> tuple[NDArray[np.uint16], NDArray[np.bool_]]:
    n_channels = int(file.u32("number of channels", 1)[0])
    if n_channels % CHANNELS_OF_CARD or not 0 < n_channels <= MAX_CARDS * CHANNELS_OF_CARD:
        raise file.error(
            f"number of channels is {n_channels}, expected a multiple of {CHANNELS_OF_CARD} up to "
            f"{MAX_CARDS * CHANNELS_OF_CARD}"
        )
    cells = file.u16("cells of channels", n_channels).reshape(-1, CHANNELS_OF_CARD)
    cells[cells >= N_CELLS] = NO_CELL
    # Codes that no card has are filled with cell 0.
    connected = np.asarray(cells.any(axis=1), np.bool_)
    cells[~connected] = NO_CELL
    number = np.bincount(cells[cells != NO_CELL], minlength=N_CELLS)
    if (number > 1).any():
        raise file.error(f"cell {int(np.argmax(number > 1))} is read out by {int(number.max())} channels")
    return cells, connected


def _check_neighbours(file: GeometryFile, neighbours: NDArray[np.uint16]) -> None:
    """Raises GeometryError for a neighbour that does not exist, or that is the cell."""
    exists = neighbours != NO_CELL
    if (neighbours[exists] >= N_CELLS).any():
        raise file.error(f"neighbours holds {int(neighbours[exists].max())}, cells are 0 to {N_CELLS - 1}")
    if (neighbours == np.arange(N_CELLS)[:, None]).any():
        raise file.error("neighbours holds a cell that is its own neighbour")


def _read_boards(file: GeometryFile, connected: NDArray[np.bool_]) -> tuple[NDArray[np.int32], NDArray[np.int32]]:
    lists: list[NDArray[np.int32]] = []
    for name in ("boards", "cards of boards"):
        n = int(file.u32(f"number of {name}", 1)[0])
        if n % BOARDS_OF_SOURCE or n > N_SOURCES * BOARDS_OF_SOURCE or (lists and n != lists[0].size):
            raise file.error(f"number of {name} is {n}, expected three for each of up to {N_SOURCES} sources")
        lists.append(file.i32(name, n).reshape(-1, BOARDS_OF_SOURCE))
    boards, cards = lists
    used = cards[(boards != 0) & (cards != EMPTY_SLOT)]
    unknown = used[(used < 0) | (used >= len(connected))]
    if len(unknown) or not connected[used].all():
        raise file.error(f"cards of boards holds a card that does not exist, there are {len(connected)}")
    if len(np.unique(used)) != len(used):
        raise file.error("cards of boards holds a card twice")
    return boards, cards
