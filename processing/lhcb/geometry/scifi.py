"""The SciFi tracker: position and bank of each channel of the 1,024 fibre mats.

Lengths in mm, global LHCb frame. Conventions of docs/formats/geometry-files.md.
"""

from dataclasses import dataclass
from pathlib import Path
from typing import Self

import numpy as np
from numpy.typing import NDArray

from hltnode.processing.lhcb.geometry import ideal_scifi
from hltnode.processing.lhcb.geometry.files import GeometryFile
from hltnode.processing.lhcb.geometry.ideal_scifi import (
    FIRST_MAT,
    LAYERS_PER_STATION,
    MATS_PER_MODULE,
    MODULES_PER_QUARTER,
    N_LAYERS,
    N_MAT_INDICES,
    N_STATIONS,
    QUARTERS_PER_LAYER,
)
from hltnode.processing.lhcb.geometry.scifi_sipms import MAX_LISTED_BANKS, SciFiSipms
from hltnode.protocol.lhcb.banks.scifi import N_BANKS, SciFiHits
from hltnode.protocol.lhcb.banks.scifi_links import LINKS_OF_BANK, SciFiLinkHits
from hltnode.protocol.lhcb.lhcb_id import scifi_lhcb_id

GEOMETRY_FILE = "scifi_geometry.bin"

N_QUARTERS = N_LAYERS * QUARTERS_PER_LAYER
N_MATS = LAYERS_PER_STATION * QUARTERS_PER_LAYER * MATS_PER_MODULE * sum(MODULES_PER_QUARTER)

# The file for banks up to version 6 lists the first channels of banks; files of other versions list SiPMs instead.
_OF_FIRST_CHANNELS = 0
_LARGEST_COORDINATE = 20_000.0


@dataclass(frozen=True, slots=True, eq=False)
class SciFiHitPositions:
    """Positions of SciFi hits; all arrays [n].

    `x`, `z` at y = 0 and `y_end`, the y of the mirrored end of the fibre, f64, mm; `length_y`, the extent of the fibre
    from that end (negative below the beam). The fibre is the line x + dx_dy y, z + dz_dy y. `sigma` (mm) from the
    pseudo-size. `layer` 0..11, `zone` = 2 layer + (1 above the beam), `mat` index, `lhcb_id`: u32.
    """

    x: NDArray[np.float64]
    z: NDArray[np.float64]
    y_end: NDArray[np.float64]
    length_y: NDArray[np.float64]
    dx_dy: NDArray[np.float64]
    dz_dy: NDArray[np.float64]
    sigma: NDArray[np.float64]
    layer: NDArray[np.uint32]
    zone: NDArray[np.uint32]
    mat: NDArray[np.uint32]
    lhcb_id: NDArray[np.uint32]


@dataclass(frozen=True, slots=True, eq=False)
class SciFiGeometry:
    """Positions of the SciFi mats and their read-out.

    `first_channel` u32[240]: channel id where each bank of versions 4 to 6 begins, empty if not known; `sipms`: the
    links of banks of versions 7 and 8, None if not known. The built-in detector has both.
    Per mat, [1536], index (channel id >> 9) - 512, of which 1,024 exist (`half_pitch` > 0); f32, mm: `mirror_point`
    [1536, 3], the middle of the fibres' mirrored end; `ddx` [1536, 3], the step per mm of u; `u_begin`, u of the first
    channel's edge; `half_pitch`, half a channel; `die_gap`, `sipm_pitch`; `dx_dy`, `dz_dy` of the fibres; `length_y`,
    their extent in y from the mirror.
    """

    first_channel: NDArray[np.uint32]
    mirror_point: NDArray[np.float32]
    ddx: NDArray[np.float32]
    u_begin: NDArray[np.float32]
    half_pitch: NDArray[np.float32]
    die_gap: NDArray[np.float32]
    sipm_pitch: NDArray[np.float32]
    dx_dy: NDArray[np.float32]
    dz_dy: NDArray[np.float32]
    length_y: NDArray[np.float32]
    sipms: SciFiSipms | None = None

    @classmethod
    def load(cls, directory: Path | str) -> Self:
        """Read scifi_geometry.bin (any version, docs/formats/geometry-files.md) from a directory.

        Raises GeometryError, which names the file, if it is missing, of the wrong size, or holds impossible values.
        """
        file = GeometryFile.read(Path(directory) / GEOMETRY_FILE)
        file.expect_u32("number of stations", N_STATIONS)
        file.expect_u32("layers per station", LAYERS_PER_STATION)
        file.expect_u32("number of layers", N_LAYERS)
        file.expect_u32("quarters per layer", QUARTERS_PER_LAYER)
        file.expect_u32("number of quarters", N_QUARTERS)
        modules = file.u32("modules of quarters", N_QUARTERS)
        expected = np.repeat(MODULES_PER_QUARTER, LAYERS_PER_STATION * QUARTERS_PER_LAYER)
        if (modules != expected).any():
            raise file.error(f"modules of quarters are {modules.tolist()}, expected {expected.tolist()}")
        file.expect_u32("mats per module", MATS_PER_MODULE)
        file.expect_u32("number of mats", N_MATS)
        first_channel, sipms = _read_out(file)
        file.expect_u32("mat indices", N_MAT_INDICES)
        columns = [file.f32(name, N_MAT_INDICES, largest=_LARGEST_COORDINATE) for name in _COLUMNS]
        file.end()
        point, direction = np.stack(columns[:3], axis=1), np.stack(columns[3:6], axis=1)
        u_begin, half_pitch, die_gap, sipm_pitch, dx_dy, dz_dy, length_y = columns[6:]
        pitches = (u_begin, half_pitch, die_gap, sipm_pitch)
        geometry = cls(first_channel, point, direction, *pitches, dx_dy, dz_dy, length_y, sipms)
        if (geometry.half_pitch > 0).sum() != N_MATS:
            raise file.error(f"{(geometry.half_pitch > 0).sum()} mats have channels, expected {N_MATS}")
        if sipms is not None and (fault := sipms.fault(geometry.half_pitch > 0)):
            raise file.error(fault)
        return geometry

    def save(self, directory: Path | str, version: int = _OF_FIRST_CHANNELS) -> Path:
        """Write scifi_geometry.bin: version 0 with the first channels of banks, other versions with their SiPMs.

        Returns its path. Raises ValueError if the geometry lacks them.
        """
        header = [N_STATIONS, LAYERS_PER_STATION, N_LAYERS, QUARTERS_PER_LAYER, N_QUARTERS]
        header += [*np.repeat(MODULES_PER_QUARTER, LAYERS_PER_STATION * QUARTERS_PER_LAYER), MATS_PER_MODULE, N_MATS]
        if version == _OF_FIRST_CHANNELS:
            if not len(self.first_channel):
                raise ValueError(f"{GEOMETRY_FILE}: version 0 needs the first channels of banks")
            header += [N_BANKS, version, *self.first_channel]
        elif self.sipms is None:
            raise ValueError(f"{GEOMETRY_FILE}: version {version} needs the SiPMs of banks")
        else:
            header += [len(self.sipms.source), version, *self.sipms.source, *self.sipms.sipm.ravel()]
        columns = [*self.mirror_point.T, *self.ddx.T, self.u_begin, self.half_pitch, self.die_gap]
        columns += [self.sipm_pitch, self.dx_dy, self.dz_dy, self.length_y]
        path = Path(directory) / GEOMETRY_FILE
        path.write_bytes(
            np.array([*header, N_MAT_INDICES], "<u4").tobytes()
            + b"".join(column.astype("<f4").tobytes() for column in columns)
        )
        return path

    @classmethod
    def builtin(cls) -> Self:
        """The ideal SciFi tracker, computed from its dimensions (ideal_scifi.py)."""
        values = ideal_scifi.mat_parameters()
        first_channel = ideal_scifi.first_channel_of_bank()
        return cls(
            first_channel=first_channel,
            sipms=SciFiSipms.of_first_channels(first_channel, values["halfChannelPitch"] > 0),
            mirror_point=values["mirrorPoint"],
            ddx=values["ddx"],
            u_begin=values["uBegin"],
            half_pitch=values["halfChannelPitch"],
            die_gap=values["dieGap"],
            sipm_pitch=values["sipmPitch"],
            dx_dy=values["dxdy"],
            dz_dy=values["dzdy"],
            length_y=values["globaldy"],
        )

    @property
    def numbering(self) -> NDArray[np.uint32]:
        """Channel ids where the banks begin by which the simulation numbers channels: `first_channel`, or those of the
        built-in detector."""
        return self.first_channel if len(self.first_channel) else ideal_scifi.first_channel_of_bank()

    def layer_z(self) -> NDArray[np.float64]:
        """Mean z (mm) of the fibres of each layer at y = 0, f64[12], ascending."""
        used = np.flatnonzero(self.half_pitch > 0)
        layer = (used + FIRST_MAT >> 7) - 4
        at_zero = self.mirror_point[used, 2] - self.dz_dy[used].astype(np.float64) * self.mirror_point[used, 1]
        return np.bincount(layer, at_zero, N_LAYERS) / np.bincount(layer, minlength=N_LAYERS)

    def hits(self, hits: SciFiHits) -> SciFiHitPositions:
        """Positions of the hits of SciFi banks, in their order, without hits of channels without a mat."""
        channel = self.first_channel[hits.bank] + hits.offset
        mat = (channel >> np.uint32(9)).astype(np.int64) - FIRST_MAT
        known = (mat >= 0) & (mat < N_MAT_INDICES)
        known[known] = self.half_pitch[mat[known]] > 0
        channel, mat = channel[known], mat[known]
        return self.positions(channel, hits.fraction[known], hits.pseudo_size[known])

    def link_hits(self, hits: SciFiLinkHits) -> SciFiHitPositions:
        """Positions of the hits of banks of versions 7 and 8, in their order, without those of links that the geometry
        does not list or that are off. Raises ValueError if it lists no SiPMs."""
        if self.sipms is None:
            raise ValueError(f"{GEOMETRY_FILE} lists no SiPMs: banks of versions 7 and 8 cannot be read")
        chosen, channel = self.sipms.channels(hits)
        return self.positions(channel, hits.fraction[chosen], hits.pseudo_size[chosen])

    def positions(
        self, channel_id: NDArray[np.uint32], fraction: NDArray[np.uint32], pseudo_size: NDArray[np.uint32]
    ) -> SciFiHitPositions:
        """Positions of channels of existing mats, from channel ids, fractions in halves of a channel, pseudo-sizes
        0..8."""
        mat = (channel_id >> np.uint32(9)).astype(np.int64) - FIRST_MAT
        cell = channel_id & np.uint32(0x7F)
        u = (
            self.u_begin[mat].astype(np.float64)
            + (2.0 * cell + 1.0 + fraction) * self.half_pitch[mat]
            + np.where(cell >> np.uint32(6) == 1, self.die_gap[mat], 0.0)
            + (channel_id >> np.uint32(7) & np.uint32(3)) * self.sipm_pitch[mat].astype(np.float64)
        )
        end = self.mirror_point[mat] + self.ddx[mat] * u[:, None]
        dx_dy, dz_dy = self.dx_dy[mat].astype(np.float64), self.dz_dy[mat].astype(np.float64)
        layer = (channel_id >> np.uint32(16)) - np.uint32(4)
        return SciFiHitPositions(
            x=end[:, 0] - dx_dy * end[:, 1],
            z=end[:, 2] - dz_dy * end[:, 1],
            y_end=end[:, 1],
            length_y=self.length_y[mat].astype(np.float64),
            dx_dy=dx_dy,
            dz_dy=dz_dy,
            sigma=0.05 + 0.03 * pseudo_size.astype(np.float64),
            layer=layer,
            zone=2 * layer + (channel_id >> np.uint32(15) & np.uint32(1)),
            mat=mat.astype(np.uint32),
            lhcb_id=scifi_lhcb_id(channel_id),
        )


def _read_out(file: GeometryFile) -> tuple[NDArray[np.uint32], SciFiSipms | None]:
    """The first channels of banks (empty if there are none), and the SiPMs of their links."""
    n_banks, version = (int(number) for number in file.u32("number of banks and version", 2))
    if version == _OF_FIRST_CHANNELS:
        if n_banks != N_BANKS:
            raise file.error(f"number of banks is {n_banks}, expected {N_BANKS}")
        first_channel = file.u32("first channels of banks", N_BANKS)
        if first_channel.min() < FIRST_MAT << 9 or first_channel.max() >= (FIRST_MAT + N_MAT_INDICES) << 9:
            raise file.error("first channels of banks: one is outside the detector")
        return first_channel, None
    if not 1 <= n_banks <= MAX_LISTED_BANKS:
        raise file.error(f"number of banks is {n_banks}, 1 to {MAX_LISTED_BANKS} are possible")
    source = file.u32("source ids of banks", n_banks)
    sipm = file.u32("SiPMs of links", n_banks * LINKS_OF_BANK).reshape(n_banks, LINKS_OF_BANK)
    return np.empty(0, np.uint32), SciFiSipms(source, sipm)


# The arrays in the order of the file.
_COLUMNS = (
    "mirrorPointX", "mirrorPointY", "mirrorPointZ", "ddxX", "ddxY", "ddxZ",
    "uBegin", "halfChannelPitch", "dieGap", "sipmPitch", "dxdy", "dzdy", "globaldy",
)  # fmt: skip
