"""The dipole magnet: a smooth field of three components, for both polarities.

The field is that of magnetic charges on rectangular pole sheets above and below the beam: closed formulas, free of
divergence and rotation everywhere between the sheets, with their fringe fields. Eleven pairs of sheets represent the
poles, which open like the acceptance (no sheet is lower than 0.28 z), the return yoke and a shielding plate.

Source of the figures: sizes, positions and strengths were fitted together (least squares) to the LHCb field as other
programs describe it, along simulated particles in this field (|tx| < 0.28, |ty| < 0.22, 3.5 to 25 GeV):

- the formula of Allen's forward tracking that finds q/p from the slopes before and behind the magnet, to be flat in
  tx, ty and p; its polynomials for y in the stereo layers of the SciFi (within 1 mm), the shift of the plane of the
  kick with tx, and the decrease of the curvature within the SciFi;
- the tables of the VELO-UT search, bending power and displacements (within 0.002 T m and 1 %);
- 295 long particles of more than 3 GeV of the seven real simulated events: x, y, slopes and curvature in the SciFi,
  with an energy loss of 18 MeV. They determine the strength (within 0.1 %), the plane of the kick on the axis (5 mm)
  and the curvature (3 %).

Result: 1.13 T at most, 4.167 Tm from the collisions to the end of the SciFi, 0.095 Tm between VELO and UT. The formula
is flat within 0.5 % for |tx| < 0.2; beyond, the formula itself varies (tests/processing/lhcb/geometry).
"""

from collections.abc import Callable
from dataclasses import dataclass
from hashlib import sha256
from pathlib import Path
from typing import Self

import numpy as np
from numpy.typing import ArrayLike, NDArray

from hltnode.processing.lhcb.geometry.files import GeometryFile
from hltnode.processing.offline.field_map import FieldMap

POLARITY_FILE = "polarity.bin"
DOWN = -1.0
UP = 1.0

# Momentum kick (MeV/c) of unit charge per T mm.
MEV_PER_TESLA_MM = 0.299792458

# Pairs of sheets at y = +-height: half width, height, first and last z in mm, and strength in T.
_SHEETS = np.array(
    (
        # poles, in slices of z
        (2775.4, 996.2, 2700.0, 3200.0, -0.10914),
        (2627.4, 1662.4, 3200.0, 3700.0, 0.05899),
        (2615.6, 1397.0, 3700.0, 4300.0, 0.27755),
        (3042.8, 1374.5, 4300.0, 4900.0, 0.30830),
        (3552.7, 1540.3, 4900.0, 5500.0, 0.15530),
        (3908.3, 1707.2, 5500.0, 6100.0, 0.19987),
        (4023.6, 1874.3, 6100.0, 6700.0, 0.14303),
        (4012.7, 2016.7, 6828.4, 7208.8, 0.15447),
        # yoke
        (3114.1, 3214.5, 1447.2, 8786.4, -0.03594),
        # front of the yoke, plate in front of it
        (1376.5, 814.8, 2450.6, 2912.5, 0.08803),
        (889.6, 924.0, 2061.8, 3316.8, -0.06091),
    )
)
# Rounds off the field at the edges of sheets (mm^2).
_EDGE = 1.0

Field = Callable[[ArrayLike, ArrayLike, ArrayLike], NDArray[np.float64]]


@dataclass(frozen=True, slots=True)
class Magnet:
    """The dipole with a polarity: -1 is down (By < 0), +1 is up, other factors scale the field.

    `field_map`: its field with the polarity up; the built-in field if there is none.
    """

    polarity: float
    field_map: FieldMap | None = None

    @classmethod
    def load(cls, directory: Path | str) -> Self:
        """The polarity of polarity.bin (one f32) in a directory, with the built-in field.

        Raises GeometryError, which names the file, if it is missing, of the wrong size or no polarity.
        """
        file = GeometryFile.read(Path(directory) / POLARITY_FILE)
        (polarity,) = file.f32("polarity", 1, largest=1.0).tolist()
        file.end()
        if polarity not in (DOWN, UP):
            raise file.error(f"polarity is {polarity:g}, expected {DOWN:g} or {UP:g}")
        return cls(polarity)

    @classmethod
    def builtin(cls, polarity: float = DOWN) -> Self:
        """The built-in field; by default down, as in the real simulated events."""
        return cls(polarity)

    @property
    def digest(self) -> str:
        """SHA-256 of the numbers that define the field; the same for both polarities."""
        if self.field_map is not None:
            return self.field_map.digest
        return sha256(_SHEETS.tobytes() + np.float64(_EDGE).tobytes()).hexdigest()

    def field(self, x: ArrayLike, y: ArrayLike, z: ArrayLike) -> NDArray[np.float64]:
        """(Bx, By, Bz) in T, shape (3, ...), at points in mm; the built-in field is valid between the poles
        (|y| < 0.28 z)."""
        if self.field_map is not None:
            return self.polarity * self.field_map.field(x, y, z)
        px, py, pz = np.broadcast_arrays(*(np.asarray(value, np.float64) for value in (x, y, z)))
        total = np.zeros((3, *px.shape))
        for half_width, height, first, last, strength in _SHEETS:
            for v, charge in ((py + height, strength), (py - height, -strength)):
                for u, sign_u in ((px + half_width, 1.0), (px - half_width, -1.0)):
                    for w, sign_w in ((pz - first, 1.0), (pz - last, -1.0)):
                        r = np.sqrt(u * u + v * v + w * w + _EDGE)
                        corner = charge * sign_u * sign_w
                        total[0] -= corner * np.log(w + r)
                        total[1] += corner * np.arctan2(u * w * np.sign(v), np.abs(v) * r)
                        total[2] -= corner * np.log(u + r)
        return self.polarity * total

    def field_above(self, y: ArrayLike, z: ArrayLike) -> NDArray[np.float64]:
        """(By, Bz) in T, shape (2, ...), at points with x = 0, in mm: those of `field` bit for bit, in half its time.

        The corners of a sheet at both signs of x have the same distance and the same part of By there.
        """
        py, pz = np.broadcast_arrays(np.asarray(y, np.float64), np.asarray(z, np.float64))
        if self.field_map is not None:
            return self.field(np.zeros_like(py), py, pz)[1:]
        total = np.zeros((2, *py.shape))
        for half_width, height, first, last, strength in _SHEETS:
            for v, charge in ((py + height, strength), (py - height, -strength)):
                u, sign, above = half_width, np.sign(v), np.abs(v)
                ends = []
                for w, sign_w in ((pz - first, 1.0), (pz - last, -1.0)):
                    corner, r = charge * sign_w, np.sqrt(u * u + v * v + w * w + _EDGE)
                    ends.append((corner, r, corner * np.arctan2(u * w * sign, above * r)))
                # In the order of `field`, so that the sums are rounded alike.
                for u_of_corner, sign_u in ((u, 1.0), (-u, -1.0)):
                    for corner, r, part in ends:
                        total[0] += part
                        total[1] -= corner * sign_u * np.log(u_of_corner + r)
        return self.polarity * total


def bending_power(field: Field, first_z: float, last_z: float, *, tx: float = 0.0, ty: float = 0.0) -> float:
    """Integral (T m) of By - ty Bz, which bends in x, along the straight line from the collisions; step 10 mm."""
    z = np.arange(first_z + 5.0, last_z, 10.0)
    _, by, bz = field(tx * z, ty * z, z)
    return float(np.sum(by - ty * bz) * 0.01)
