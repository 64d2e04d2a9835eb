"""The VELO: position of each pixel of the 208 sensors, and the pixel at a given position.

Frames. *Local*: x along the 768 columns, y along the 256 rows of a sensor, origin at its corner, mm.
*Global*: the LHCb frame, z along the beam, mm. Conventions of docs/formats/geometry-files.md.
"""

import struct
from dataclasses import dataclass
from pathlib import Path
from typing import Self

import numpy as np
from numpy.typing import ArrayLike, NDArray

from hltnode.processing.lhcb.geometry import ideal_velo
from hltnode.processing.lhcb.geometry.errors import GeometryError
from hltnode.processing.lhcb.geometry.ideal_velo import N_COLUMNS, N_MODULES, N_ROWS, N_SENSORS, PIXEL_PITCH

VELO_FILE = "velo_geometry.bin"
BEAMLINE_FILE = "beamline.bin"

MASK_WORDS = 4 * N_SENSORS // 32
"""Words of the mask of ASICs: a bit for each, four for each sensor of three."""

# A coordinate beyond this (mm) is an error of the file: the VELO is 1.1 m long, its sensors within 10 cm of the beam.
_LARGEST_COORDINATE = 2000.0


@dataclass(frozen=True, slots=True)
class BeamLine:
    """A straight line in the global frame: x and y at z = 0 in mm, slopes dx/dz and dy/dz."""

    x: float = 0.0
    y: float = 0.0
    slope_x: float = 0.0
    slope_y: float = 0.0

    def at(self, z: ArrayLike) -> NDArray[np.float64]:
        """x and y at z, f64[..., 2], mm."""
        place = np.asarray(z, dtype=np.float64)
        return np.stack([self.x + self.slope_x * place, self.y + self.slope_y * place], axis=-1)


Z_AXIS = BeamLine()
"""The nominal beam line."""


@dataclass(frozen=True, slots=True, eq=False)
class VeloGeometry:
    """Positions of the VELO sensors and pixels.

    module_z f32[52] (mm), local_x f32[768] (mm, centre of each column), x_pitch f32[768] (mm, distance to the centre of
    the next column), ltg f32[208, 12] (rotation row-major 0-8, translation 9-11 in mm).
    """

    module_z: NDArray[np.float32]
    local_x: NDArray[np.float32]
    x_pitch: NDArray[np.float32]
    ltg: NDArray[np.float32]
    beamline: BeamLine

    @classmethod
    def load(cls, directory: Path | str) -> Self:
        """Read velo_geometry.bin and beamline.bin (docs/formats/geometry-files.md) from a directory.

        Raises GeometryError, which names the file, if one is missing, unreadable, of the wrong size or not finite.
        """
        velo_path, beamline_path = Path(directory) / VELO_FILE, Path(directory) / BEAMLINE_FILE
        module_z, local_x, x_pitch, ltg = _parse_velo_file(velo_path, _read(velo_path))
        beamline = _parse_beamline_file(beamline_path, _read(beamline_path))
        return cls(module_z=module_z, local_x=local_x, x_pitch=x_pitch, ltg=ltg, beamline=beamline)

    @classmethod
    def builtin(cls) -> Self:
        """The ideal VELO, computed from published dimensions (ideal_velo.py); beam line on the z axis."""
        return cls(
            module_z=ideal_velo.module_z(),
            local_x=ideal_velo.local_x(),
            x_pitch=ideal_velo.x_pitch(),
            ltg=ideal_velo.local_to_global(),
            beamline=Z_AXIS,
        )

    def to_bytes(self) -> bytes:
        """For the kernels, f32 little-endian: module_z[52], local_x[768], x_pitch[768], ltg[208][12], x, y and
        slopes of the beam line; then the mask of the ASICs, u32[1 + 26], with none masked."""
        beamline = np.array([self.beamline.x, self.beamline.y, self.beamline.slope_x, self.beamline.slope_y])
        parts = (self.module_z, self.local_x, self.x_pitch, self.ltg, beamline)
        numbers = b"".join(np.ascontiguousarray(part, dtype="<f4").tobytes() for part in parts)
        return numbers + bytes(4 * (1 + MASK_WORDS))

    def local_to_global(
        self, sensor: ArrayLike, col: ArrayLike, row: ArrayLike, fx: ArrayLike = 0.0, fy: ArrayLike = 0.0
    ) -> NDArray[np.float64]:
        """Global (x, y, z) in mm, shape (..., 3), of positions (col + fx, row + fy) in pixels on sensors."""
        column = np.asarray(col, dtype=np.int64)
        local_x = self.local_x[column].astype(np.float64) + np.asarray(fx) * self.x_pitch[column]
        local_y = (np.asarray(row) + np.asarray(fy) + 0.5) * PIXEL_PITCH
        return self.place(sensor, local_x, local_y)

    def place(self, sensor: ArrayLike, local_x: ArrayLike, local_y: ArrayLike) -> NDArray[np.float64]:
        """Global (x, y, z) in mm, shape (..., 3), of local positions (mm) in the planes of sensors."""
        t = self.ltg[np.asarray(sensor, dtype=np.int64)].astype(np.float64)
        u, v = np.asarray(local_x), np.asarray(local_y)
        return np.stack([t[..., 3 * i] * u + t[..., 3 * i + 1] * v + t[..., 9 + i] for i in range(3)], axis=-1)

    def global_to_local(self, sensor: ArrayLike, xyz: NDArray[np.float64]) -> NDArray[np.float64]:
        """Local (x, y, z) in mm of global points (..., 3); z is the distance from the sensor plane."""
        t = self.ltg[np.asarray(sensor, dtype=np.int64)].astype(np.float64)
        rotation = t[..., :9].reshape(*t.shape[:-1], 3, 3)
        local: NDArray[np.float64] = np.einsum("...ij,...i->...j", rotation, xyz - t[..., 9:])
        return local

    def local_to_pixel(
        self, local_x: ArrayLike, local_y: ArrayLike
    ) -> tuple[NDArray[np.int64], NDArray[np.int64], NDArray[np.float64], NDArray[np.float64]]:
        """(col, row, fx, fy) of local places, with fractions in [0, 1).

        A place outside the grid of pixel centres gets the nearest pixel on the edge and fraction 0.
        """
        x = np.asarray(local_x, dtype=np.float64)
        centres = self.local_x.astype(np.float64)
        col = np.clip(np.searchsorted(centres, x, side="right") - 1, 0, N_COLUMNS - 1)
        fx = np.clip((x - centres[col]) / self.x_pitch[col], 0.0, None)
        y = np.asarray(local_y, dtype=np.float64) / PIXEL_PITCH - 0.5
        row = np.clip(np.floor(y).astype(np.int64), 0, N_ROWS - 1)
        fy = np.clip(y - row, 0.0, None)
        return col, row, np.where(col == N_COLUMNS - 1, 0.0, fx), np.where(row == N_ROWS - 1, 0.0, fy)

    def is_inside(self, local_x: ArrayLike, local_y: ArrayLike, margin: float = 0.0) -> NDArray[np.bool_]:
        """True for local places (mm) on the sensitive area of a sensor, or within `margin` mm of it."""
        x, y = np.asarray(local_x), np.asarray(local_y)
        beyond = 0.5 * PIXEL_PITCH + margin
        inside: NDArray[np.bool_] = (
            (x >= self.local_x[0] - beyond)
            & (x <= self.local_x[-1] + beyond)
            & (y >= -margin)
            & (y <= N_ROWS * PIXEL_PITCH + margin)
        )
        return inside


def _read(path: Path) -> bytes:
    try:
        return path.read_bytes()
    except OSError as error:
        raise GeometryError(f"{path}: cannot be read: {error.strerror}") from error


def _parse_velo_file(
    path: Path, content: bytes
) -> tuple[NDArray[np.float32], NDArray[np.float32], NDArray[np.float32], NDArray[np.float32]]:
    shapes = {"module_z": (N_MODULES,), "local_x": (N_COLUMNS,), "x_pitch": (N_COLUMNS,), "ltg": (N_SENSORS, 12)}
    expected = sum(8 * len(shape) + 4 * int(np.prod(shape)) for shape in shapes.values())
    if len(content) != expected:
        raise GeometryError(f"{path}: {len(content)} bytes, expected {expected}")
    offset = 0
    arrays = []
    for name, shape in shapes.items():
        counts = struct.unpack_from(f"<{len(shape)}Q", content, offset)
        if counts != shape:
            raise GeometryError(f"{path}: {name} has counts {counts}, expected {shape}")
        offset += 8 * len(shape)
        values = np.frombuffer(content, dtype="<f4", count=int(np.prod(shape)), offset=offset).astype(np.float32)
        _check_values(path, name, values)
        offset += 4 * values.size
        arrays.append(values.reshape(shape))
    module_z, local_x, x_pitch, ltg = arrays
    if not (np.all(np.diff(local_x) > 0) and np.all(x_pitch > 0)):
        raise GeometryError(f"{path}: the column positions do not rise")
    if not np.all(np.diff(module_z) > 0):
        raise GeometryError(f"{path}: the module positions do not rise")
    return module_z, local_x, x_pitch, ltg


def _parse_beamline_file(path: Path, content: bytes) -> BeamLine:
    if len(content) != 8:
        raise GeometryError(f"{path}: {len(content)} bytes, expected 8")
    values = np.frombuffer(content, dtype="<f4")
    _check_values(path, "beamline", values)
    return BeamLine(float(values[0]), float(values[1]))


def _check_values(path: Path, name: str, values: NDArray[np.float32]) -> None:
    if not np.all(np.isfinite(values)):
        raise GeometryError(f"{path}: {name} holds a value that is not finite")
    if np.max(np.abs(values)) > _LARGEST_COORDINATE:
        raise GeometryError(f"{path}: {name} holds {np.max(np.abs(values)):g} mm, outside the detector")
