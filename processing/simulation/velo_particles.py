"""Particles of simulated events as columns: what the generator makes and the detector response reads."""

from dataclasses import dataclass, fields
from typing import Self

import numpy as np
from numpy.typing import NDArray

FloatArray = NDArray[np.float64]
Int64Array = NDArray[np.int64]
Mask = NDArray[np.bool_]


@dataclass(frozen=True, slots=True, eq=False)
class ParticleColumns:
    """Charged particles of one event, one row each.

    origin f64[n, 3] (mm), momentum f64[n, 3] (MeV), pid and charge i64[n], z_end f64[n] (mm, where the particle stops),
    mother i64[n] (PDG id of the particle it comes from, 0 if from the collision), from_beauty, from_charm,
    from_strange bool[n].
    """

    origin: FloatArray
    momentum: FloatArray
    pid: Int64Array
    charge: Int64Array
    z_end: FloatArray
    mother: Int64Array
    from_beauty: Mask
    from_charm: Mask
    from_strange: Mask

    @classmethod
    def of(
        cls,
        origin: FloatArray,
        momentum: FloatArray,
        pid: Int64Array,
        charge: Int64Array,
        mother: int = 0,
    ) -> Self:
        """Particles that stop nowhere and come from no flavour."""
        n = len(pid)
        z_end = np.where(momentum[:, 2] > 0, np.inf, -np.inf)
        flavours = np.zeros((3, n), dtype=bool)
        return cls(origin, momentum, pid, charge, z_end, np.full(n, mother), *flavours)

    def __len__(self) -> int:
        return len(self.pid)

    def take(self, rows: Int64Array | Mask) -> Self:
        """The chosen rows."""
        return type(self)(*(getattr(self, field.name)[rows] for field in fields(self)))

    @classmethod
    def join(cls, parts: list[Self]) -> Self:
        """All rows of all parts."""
        return cls(*(np.concatenate([getattr(part, field.name) for part in parts]) for field in fields(cls)))

    @property
    def p(self) -> FloatArray:
        """Momentum, MeV."""
        squares: FloatArray = (self.momentum**2).sum(axis=1)
        return np.sqrt(squares)

    @property
    def pt(self) -> FloatArray:
        """Transverse momentum, MeV."""
        return np.hypot(self.momentum[:, 0], self.momentum[:, 1])

    @property
    def eta(self) -> FloatArray:
        """Pseudorapidity."""
        return np.arcsinh(self.momentum[:, 2] / self.pt)

    @property
    def phi(self) -> FloatArray:
        """Azimuth, rad."""
        return np.arctan2(self.momentum[:, 1], self.momentum[:, 0])
