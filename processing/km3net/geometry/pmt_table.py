"""The PMTs of a detector as kernels read them, and the built-in towers."""

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from hltnode.processing.framework.collections import Record, SharedTypes, constant_column
from hltnode.protocol.km3net.hit_banks import MAX_PMTS

NO_LINE = 0xFFFF
PMT = Record(
    "km3net_pmt",
    np.dtype([("x", "<f4"), ("y", "<f4"), ("z", "<f4"), ("line", "<u2"), ("floor", "u1"), ("group", "u1")]),
    {
        "x": "m",
        "y": "m",
        "z": "m, upwards",
        "line": "number of the line or tower; no_line: there is no such PMT",
        "floor": "number within the line, from below",
        "group": "PMTs of a floor with the same number are adjacent",
    },
)
pmt_types = SharedTypes(__file__, "pmt_types", records=(PMT,), sizes={"no_line": NO_LINE, "max_pmts": MAX_PMTS})
pmt_table = constant_column("km3net.pmt", PMT, lambda _: MAX_PMTS)
"""One element for each number that a hit can name."""

_NONE = np.array([(0.0, 0.0, 0.0, NO_LINE, 0, 0)], PMT.dtype)
_TOWER_ARM = 4.0
"""m from the middle of a floor of a tower to its ends; the bars of NEMO Phase II have 8 m."""
_MODULE_DISTANCE = 0.5
"""m between the two PMTs at one place of a bar."""


@dataclass(frozen=True, slots=True)
class Detector:
    """pmts: PMT[pmts], at most MAX_PMTS. directions: f32[pmts, 3], unit vectors of the axes of the PMTs.

    t0: f64[pmts], ns that are added to times of a PMT. The readout boards add it, so banks have corrected times.
    """

    pmts: NDArray[np.void]
    directions: NDArray[np.float32]
    t0: NDArray[np.float64]

    @property
    def positions(self) -> NDArray[np.float64]:
        """f64[pmts, 3], m."""
        return np.column_stack([self.pmts[axis].astype(np.float64) for axis in "xyz"])

    @property
    def places(self) -> NDArray[np.int64]:
        """Line, floor and group of each PMT as one number, i64[pmts]: adjacent PMTs have the same."""
        line, floor, group = (self.pmts[name].astype(np.int64) for name in ("line", "floor", "group"))
        found: NDArray[np.int64] = line << 16 | floor << 8 | group
        return found

    def table(self) -> NDArray[np.void]:
        """The content of pmt_table: PMT[MAX_PMTS]."""
        table = np.repeat(_NONE, MAX_PMTS)
        table[: len(self.pmts)] = self.pmts
        return table


def tower(floors: int, pmts_of_floor: int, distance: float) -> Detector:
    """A tower of NEMO: bars with pairs of PMTs, one looking down, one sideways; each bar is turned by 90 degrees.

    Pairs are at the ends of a bar, a third one in its middle. distance: m between floors. 8 floors of 4 PMTs 40 m apart
    are NEMO Phase II, 14 of 6 PMTs 20 m apart the tower of KM3NeT-It (B. Bouhadef et al., "Parallel Neutrino Triggers
    Using GPUs for an Underwater Telescope", DESY-PROC-2014-05, sections 2 and 5).
    """
    n = floors * pmts_of_floor
    number = np.arange(n)
    floor, place = number // pmts_of_floor, number % pmts_of_floor
    group, sideways = place // 2, place % 2
    along = np.array([-1.0, 1.0, 0.0])[group]
    bar = np.where((floor % 2)[:, None] == 0, [[1.0, 0.0, 0.0]], [[0.0, 1.0, 0.0]])
    outwards = bar * np.where(along == 0.0, 1.0, along)[:, None]
    directions = np.where(sideways[:, None] == 1, outwards, [[0.0, 0.0, -1.0]])
    pmts = np.zeros(n, PMT.dtype)
    position = bar * (along * _TOWER_ARM)[:, None] + outwards * (sideways * _MODULE_DISTANCE)[:, None]
    pmts["x"], pmts["y"] = position[:, 0], position[:, 1]
    pmts["z"] = (floor - (floors - 1) / 2.0) * distance
    pmts["floor"], pmts["group"] = floor, group
    return Detector(pmts, directions.astype(np.float32), np.zeros(n))


def nemo_tower() -> Detector:
    """NEMO Phase II: 8 floors of 4 PMTs, 40 m apart."""
    return tower(8, 4, 40.0)


def km3net_tower() -> Detector:
    """The tower of KM3NeT-It: 14 floors of 6 PMTs, 20 m apart."""
    return tower(14, 6, 20.0)


def building_block(lines: int = 115, floors: int = 18, pmts_of_floor: int = 31) -> Detector:
    """A building block of KM3NeT-ARCA: lines 90 m apart on a hexagonal grid, spheres 36 m apart on each of them.

    The PMTs of a sphere have directions of equal density below 60 degrees of elevation. All of them are one group
    (KM3NeT Collaboration, "Letter of intent for KM3NeT 2.0", J. Phys. G 43 (2016) 084001, section 2).
    """
    n = lines * floors * pmts_of_floor
    number = np.arange(n)
    line, floor, place = number // (floors * pmts_of_floor), number // pmts_of_floor % floors, number % pmts_of_floor
    rows, columns = np.meshgrid(np.arange(-12, 13), np.arange(-12, 13), indexing="ij")
    grid = np.column_stack([(columns + (rows % 2) / 2.0).ravel() * 90.0, rows.ravel() * 90.0 * 3.0**0.5 / 2.0])
    nearest = grid[np.argsort(np.hypot(*grid.T), kind="stable")[:lines]]
    cosine = 0.5 - 1.5 * (np.arange(pmts_of_floor) + 0.5) / pmts_of_floor
    turn = np.arange(pmts_of_floor) * np.pi * (3.0 - 5.0**0.5)
    sine = np.sqrt(1.0 - cosine**2)
    sphere = np.column_stack([sine * np.cos(turn), sine * np.sin(turn), cosine])
    pmts = np.zeros(n, PMT.dtype)
    pmts["x"], pmts["y"] = nearest[line].T + 0.2 * sphere[place, :2].T
    pmts["z"] = (floor - (floors - 1) / 2.0) * 36.0 + 0.2 * sphere[place, 2]
    pmts["line"], pmts["floor"] = line, floor
    return Detector(pmts, sphere[place].astype(np.float32), np.zeros(n))
