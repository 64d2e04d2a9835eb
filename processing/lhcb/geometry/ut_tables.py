"""Tables of the VELO-UT search: deflections by the fringe field between VELO and UT (docs/physics/detector.md)."""

from dataclasses import dataclass
from pathlib import Path
from typing import Self

import numpy as np
from numpy.typing import NDArray

from hltnode.processing.lhcb.geometry.files import GeometryFile
from hltnode.processing.lhcb.geometry.ideal_ut import LAYER_Z
from hltnode.processing.lhcb.geometry.magnet import UP, Magnet

TABLES_FILE = "ut_tables.bin"

# Steps of |ty|, ty, z of the origin, z of the state, of the tables; ends of their ranges (mm).
N_ABS_TY, N_TY, N_ORIGIN, N_STATE = 30, 30, 10, 10
MAX_TY, MAX_ORIGIN, MAX_STATE = 0.3, 250.0, 800.0
N_LAYERS = 4
Z_MID_UT = 2484.6
# z of the VELO states at the start of the UT search, mm.
Z_VELO_END = 770.0
# Step of the integration of the built-in tables, mm.
_STEP = 10.0


@dataclass(frozen=True, slots=True, eq=False)
class UtTables:
    """Deflections between VELO and UT.

    `dx_lay` f32[31, 4]: displacement at the middle of the UT over that at each layer, by |ty| in steps of 0.01.
    `bdl` f32[11, 11, 31]: bending power (T m, positive) from the state to the middle of the UT, by z of the VELO state
    (0..800 mm), z of the origin (-250..250 mm), and ty (-0.3..0.3).
    """

    dx_lay: NDArray[np.float32]
    bdl: NDArray[np.float32]

    @classmethod
    def load(cls, directory: Path | str) -> Self:
        """Read ut_tables.bin from a directory.

        Raises GeometryError, which names the file, if it is missing, of the wrong size, or holds impossible values.
        """
        file = GeometryFile.read(Path(directory) / TABLES_FILE)
        for name, expected in (
            ("dimensions of dxLay", 2),
            ("layers less 1", N_LAYERS - 1),
            ("steps of |ty|", N_ABS_TY),
        ):
            file.expect_u32(name, expected)
        n_dx_lay = (N_ABS_TY + 1) * N_LAYERS
        file.expect_u64("size of dxLay", n_dx_lay)
        dx_lay = file.f32("dxLay", n_dx_lay, largest=100.0)
        for name, expected in (
            ("dimensions of bdl", 3),
            ("steps of ty", N_TY),
            ("steps of the origin", N_ORIGIN),
            ("steps of the state", N_STATE),
        ):
            file.expect_u32(name, expected)
        shape = (N_STATE + 1, N_ORIGIN + 1, N_TY + 1)
        n_bdl = int(np.prod(shape))
        file.expect_u64("size of bdl", n_bdl)
        bdl = file.f32("bdl", n_bdl, largest=10.0)
        file.end()
        return cls(dx_lay.reshape(N_ABS_TY + 1, N_LAYERS), bdl.reshape(shape))

    def bdl_from(self, z: float) -> NDArray[np.float32]:
        """bdl for states at one z (0..800 mm), f32[11, 31]."""
        place = z * N_STATE / MAX_STATE
        below = min(int(place), N_STATE - 1)
        lower, upper = self.bdl[below : below + 2].astype(np.float64)
        table: NDArray[np.float32] = (lower + (place - below) * (upper - lower)).astype(np.float32)
        return table

    def to_bytes(self, polarity: float) -> bytes:
        """For the kernels, f32 little-endian: dx_lay, bdl for states at the end of the VELO, the polarity of the
        magnet."""
        parts = (self.dx_lay, self.bdl_from(Z_VELO_END), np.array(polarity))
        return b"".join(np.ascontiguousarray(part, dtype="<f4").tobytes() for part in parts)

    @classmethod
    def builtin(cls) -> Self:
        """The tables of the built-in field, for tracks with tx = 0."""
        return cls(_dx_lay(), _bdl())


def _deflecting(ty: NDArray[np.float64], origin: float, z: NDArray[np.float64]) -> NDArray[np.float64]:
    """By - ty Bz (T) along lines through (0, 0, origin), [len(ty), len(z)]."""
    y = ty[:, None] * (z[None, :] - origin)
    by, bz = Magnet(UP).field_above(y, np.broadcast_to(z, y.shape))
    deflecting: NDArray[np.float64] = by - ty[:, None] * bz
    return deflecting


def _bdl() -> NDArray[np.float32]:
    z: NDArray[np.float64] = np.arange(0.0, Z_MID_UT, _STEP) + 0.5 * _STEP
    ty = np.linspace(-MAX_TY, MAX_TY, N_TY + 1)
    states = np.linspace(0.0, MAX_STATE, N_STATE + 1)
    table = np.empty((N_STATE + 1, N_ORIGIN + 1, N_TY + 1))
    for i, origin in enumerate(np.linspace(-MAX_ORIGIN, MAX_ORIGIN, N_ORIGIN + 1)):
        field = _deflecting(ty, float(origin), z)
        table[:, i] = [field[:, z > state].sum(axis=1) * _STEP / 1000.0 for state in states]
    return table.astype(np.float32)


def _dx_lay() -> NDArray[np.float32]:
    z: NDArray[np.float64] = np.arange(0.0, LAYER_Z[-1], _STEP) + 0.5 * _STEP
    field = _deflecting(np.linspace(0.0, MAX_TY, N_ABS_TY + 1), 0.0, z)

    def displacement(at: float) -> NDArray[np.float64]:
        return field @ np.clip(at - z, 0.0, None)

    middle = displacement(Z_MID_UT)
    return np.stack([middle / displacement(layer_z) for layer_z in LAYER_Z], axis=1).astype(np.float32)
