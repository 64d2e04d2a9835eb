"""The UT: position, board and lane of each strip of the 1,048 sensors.

Lengths in mm, global LHCb frame. Conventions of docs/formats/geometry-files.md.
"""

from dataclasses import dataclass
from pathlib import Path
from typing import Self

import numpy as np
from numpy.typing import NDArray

from hltnode.processing.lhcb.geometry import ideal_ut
from hltnode.processing.lhcb.geometry.files import GeometryFile
from hltnode.processing.lhcb.geometry.ideal_ut import DX_DY, N_SECTORS
from hltnode.protocol.lhcb.banks.ut import N_BOARDS, N_LANES, N_STRIPS, UtHits
from hltnode.protocol.lhcb.lhcb_id import UtChannel, ut_channel_id, ut_lhcb_id

BOARDS_FILE = "ut_boards.bin"
GEOMETRY_FILE = "ut_geometry.bin"

# First sector of each layer, and the end.
LAYER_OFFSETS = (0, 248, 496, 772, N_SECTORS)

_BOARDS_VERSION = 3
_BOARD_FIELDS = ("sector", "module", "face", "stave", "layer", "side", "type", "chan_id")
_PARAMETERS = ("pitch", "dy", "dp0diX", "dp0diY", "dp0diZ", "p0X", "p0Y", "p0Z", "cos")
_LARGEST_COORDINATE = 5000.0


@dataclass(frozen=True, slots=True, eq=False)
class UtHitPositions:
    """Positions of UT hits; all arrays [n].

    `x` and `z` at y = 0, `y_begin` and `y_end` of the strip (y_begin < y_end), f64, mm; the strip is the line
    x(y) = x + dx_dy y at z. `weight` = 12/pitch^2 (1/mm^2). `layer` 0..3, `sector` 0..1047, `lhcb_id` u32.
    """

    x: NDArray[np.float64]
    z: NDArray[np.float64]
    y_begin: NDArray[np.float64]
    y_end: NDArray[np.float64]
    dx_dy: NDArray[np.float64]
    weight: NDArray[np.float64]
    layer: NDArray[np.uint32]
    sector: NDArray[np.uint32]
    lhcb_id: NDArray[np.uint32]


@dataclass(frozen=True, slots=True, eq=False)
class UtGeometry:
    """Positions of the UT sensors and their read-out.

    Per lane, index 6 board + lane: `sector_of_lane` i32[1440] (-1: no sensor), `channel_of_lane` u32[1440] (channel id
    of the sensor's strip 0). Per sector, [1048]: `first_strip` u32 (number of the first strip in the banks); f32 in mm:
    `pitch`, `dy` (length along y), `p0` [1048, 3] (lower end of the first strip: x at y = 0, y, z; z < 0 marks a sensor
    whose strips count backwards), `dp0di` [1048, 3] (step from strip to strip), `cos` of the stereo angle.
    """

    sector_of_lane: NDArray[np.int32]
    channel_of_lane: NDArray[np.uint32]
    first_strip: NDArray[np.uint32]
    pitch: NDArray[np.float32]
    dy: NDArray[np.float32]
    p0: NDArray[np.float32]
    dp0di: NDArray[np.float32]
    cos: NDArray[np.float32]

    @classmethod
    def load(cls, directory: Path | str) -> Self:
        """Read ut_boards.bin and ut_geometry.bin (docs/formats/geometry-files.md) from a directory.

        Raises GeometryError, which names the file, if one is missing, of the wrong size, or holds impossible values.
        """
        sector_of_lane, channel_of_lane = _parse_boards(GeometryFile.read(Path(directory) / BOARDS_FILE))
        first_strip, parameters = _parse_geometry(GeometryFile.read(Path(directory) / GEOMETRY_FILE))
        return cls._of(sector_of_lane, channel_of_lane, first_strip, parameters)

    @classmethod
    def builtin(cls) -> Self:
        """The ideal UT, computed from its dimensions (ideal_ut.py)."""
        first_strip = np.ones(N_SECTORS, np.uint32)
        return cls._of(*ideal_ut.lanes(), first_strip, ideal_ut.sector_parameters())

    @classmethod
    def _of(
        cls,
        sector_of_lane: NDArray[np.int32],
        channel_of_lane: NDArray[np.uint32],
        first_strip: NDArray[np.uint32],
        parameters: dict[str, NDArray[np.float32]],
    ) -> Self:
        return cls(
            sector_of_lane=sector_of_lane,
            channel_of_lane=channel_of_lane,
            first_strip=first_strip,
            pitch=parameters["pitch"],
            dy=parameters["dy"],
            p0=np.stack([parameters[name] for name in ("p0X", "p0Y", "p0Z")], axis=1),
            dp0di=np.stack([parameters[name] for name in ("dp0diX", "dp0diY", "dp0diZ")], axis=1),
            cos=parameters["cos"],
        )

    @property
    def layer_of_sector(self) -> NDArray[np.uint32]:
        """The layer (0..3) of each sector, u32[1048]."""
        return np.repeat(np.arange(4, dtype=np.uint32), np.diff(LAYER_OFFSETS))

    def lane_of_sector(self) -> NDArray[np.int64]:
        """The lane (6 board + lane) that reads each sector, i64[1048]."""
        lanes = np.full(N_SECTORS, -1, np.int64)
        used = np.flatnonzero(self.sector_of_lane >= 0)
        lanes[self.sector_of_lane[used]] = used
        return lanes

    def hits(self, hits: UtHits) -> UtHitPositions:
        """Positions of the hits of UT banks, in their order, without hits of lanes without a sensor."""
        lane = hits.board.astype(np.int64) * N_LANES + hits.lane
        known = self.sector_of_lane[lane] >= 0
        lane = lane[known]
        sector = self.sector_of_lane[lane]
        from_first = hits.strip[known].astype(np.int64) - self.first_strip[sector]
        forwards = self.p0[sector, 2] >= 0
        n = np.where(forwards, from_first, N_STRIPS - from_first - 1) + 0.25 * hits.fraction[known]
        p0, dp0di = self.p0[sector].astype(np.float64), self.dp0di[sector].astype(np.float64)
        y_one_end = p0[:, 1] + n * dp0di[:, 1]
        y_other_end = y_one_end + self.dy[sector]
        layer = self.layer_of_sector[sector]
        return UtHitPositions(
            x=p0[:, 0] + n * dp0di[:, 0],
            z=np.abs(p0[:, 2]) + n * dp0di[:, 2],
            y_begin=np.minimum(y_one_end, y_other_end),
            y_end=np.maximum(y_one_end, y_other_end),
            dx_dy=np.array(DX_DY)[layer],
            weight=12.0 / self.pitch[sector].astype(np.float64) ** 2,
            layer=layer,
            sector=sector.astype(np.uint32),
            lhcb_id=ut_lhcb_id(self.channel_of_lane[lane] + from_first.astype(np.uint32)),
        )


def sector_index(channel: UtChannel) -> NDArray[np.int64]:
    """The numbers 0..1047 of the sectors of channels, in the order of ideal_ut.sectors; -1: no such sector."""
    known = np.array([ut_channel_id(_channel_of(row)) for row in ideal_ut.sectors()], np.uint32)
    wanted = ut_channel_id(channel) & np.uint32(0xFFFF_FFFF ^ (N_STRIPS - 1))
    order = np.argsort(known)
    at = np.minimum(np.searchsorted(known[order], wanted), len(known) - 1)
    return np.where(known[order][at] == wanted, order[at], -1)


def _channel_of(row: ideal_ut.Sector) -> UtChannel:
    return UtChannel(*(np.array(value, np.uint32) for value in (*row[:6], 0)))


def _parse_boards(file: GeometryFile) -> tuple[NDArray[np.int32], NDArray[np.uint32]]:
    file.expect_u32("number of boards", N_BOARDS)
    file.expect_u32("version", _BOARDS_VERSION)
    strips = file.u32("stripsPerHybrid", N_BOARDS)
    if not np.isin(strips, (0, N_STRIPS)).all():
        raise file.error(f"stripsPerHybrid holds {sorted(set(strips.tolist()))}, 0 or {N_STRIPS} expected")
    n = N_BOARDS * N_LANES
    fields = {name: file.u32(name, n) for name in _BOARD_FIELDS}
    file.end()
    channel_of_lane = fields["chan_id"]
    used = channel_of_lane != 0
    if (used & ~np.repeat(strips != 0, N_LANES)).any():
        raise file.error("a lane has a channel, but its board has no strips")
    place = {name: fields[name][used] for name in ("side", "layer", "stave", "face", "module", "sector")}
    channel = UtChannel(**place, strip=np.zeros(int(used.sum()), np.uint32))
    sector_of_lane = np.full(n, -1, np.int32)
    sector_of_lane[used] = sector_index(channel)
    if (sector_of_lane[used] < 0).any():
        raise file.error(f"lane {np.flatnonzero(used & (sector_of_lane < 0))[0]} reads a sector that does not exist")
    if len(np.unique(sector_of_lane[used])) != used.sum():
        raise file.error("a sector is read by two lanes")
    return sector_of_lane, channel_of_lane


def _parse_geometry(file: GeometryFile) -> tuple[NDArray[np.uint32], dict[str, NDArray[np.float32]]]:
    file.expect_u32("number of sectors", N_SECTORS)
    first_strip = file.u32("firstStrip", N_SECTORS)
    if first_strip.max() > N_STRIPS:
        raise file.error(f"firstStrip holds {first_strip.max()}, at most {N_STRIPS} is possible")
    parameters = {name: file.f32(name, N_SECTORS, largest=_LARGEST_COORDINATE) for name in _PARAMETERS}
    file.end()
    if (parameters["pitch"] <= 0).any() or (parameters["dy"] == 0).any():
        raise file.error("a sector has no pitch or no length")
    return first_strip, parameters
