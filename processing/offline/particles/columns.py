"""Particles of simulated events as columns: a generator makes them, the detector response reads them."""

from dataclasses import dataclass, fields
from typing import Self

import numpy as np
from numpy.typing import NDArray

from hltnode.processing.offline.arrays import Float64Array, Int64Array, Mask

# `dom_pid` of a particle without a heavy ancestor (docs/formats/truth-banks.md).
NO_ANCESTOR = -999_999


@dataclass(frozen=True, slots=True, eq=False)
class ParticleColumns:
    """Charged particles of one event or several, one row each.

    origin f64[n, 3] (mm), momentum f64[n, 3] (MeV), pid and charge i64[n], z_end f64[n] (mm, where the particle stops),
    mother i64[n] (PDG id of the particle it comes from, 0 if from the collision), mother_key i64[n] (its number in the
    event, -1 if not known), from_beauty, from_charm, from_strange, from_signal bool[n]; of the decaying heavy ancestor
    (docs/formats/truth-banks.md): dom_key, dom_pid i64[n] and dom_pt (MeV), dom_tau (ns) f64[n].
    """

    origin: Float64Array
    momentum: Float64Array
    pid: Int64Array
    charge: Int64Array
    z_end: Float64Array
    mother: Int64Array
    mother_key: Int64Array
    from_beauty: Mask
    from_charm: Mask
    from_strange: Mask
    from_signal: Mask
    dom_key: Int64Array
    dom_pid: Int64Array
    dom_pt: Float64Array
    dom_tau: Float64Array

    @classmethod
    def of(
        cls,
        origin: Float64Array,
        momentum: Float64Array,
        pid: Int64Array,
        charge: Int64Array,
        mother: int | Int64Array = 0,
        mother_key: int | Int64Array = -1,
    ) -> Self:
        """Particles that do not stop and come from no heavy flavour."""
        n = len(pid)
        return cls(
            origin,
            momentum,
            pid,
            charge,
            np.where(momentum[:, 2] > 0, np.inf, -np.inf),
            np.broadcast_to(mother, n).astype(np.int64),
            np.broadcast_to(mother_key, n).astype(np.int64),
            np.zeros(n, dtype=bool),
            np.zeros(n, dtype=bool),
            np.zeros(n, dtype=bool),
            np.zeros(n, dtype=bool),
            np.full(n, -1),
            np.full(n, NO_ANCESTOR),
            np.full(n, -1.0),
            np.full(n, -1.0),
        )

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
    def p(self) -> Float64Array:
        """Momentum, MeV."""
        squares: Float64Array = (self.momentum**2).sum(axis=1)
        return np.sqrt(squares)

    @property
    def pt(self) -> Float64Array:
        """Transverse momentum, MeV."""
        return np.hypot(self.momentum[:, 0], self.momentum[:, 1])

    @property
    def eta(self) -> Float64Array:
        """Pseudorapidity."""
        return np.arcsinh(self.momentum[:, 2] / self.pt)

    @property
    def phi(self) -> Float64Array:
        """Azimuth, rad."""
        return np.arctan2(self.momentum[:, 1], self.momentum[:, 0])

    def truth(self, key: Int64Array) -> dict[str, NDArray[np.generic]]:
        """The fields of truth banks (docs/formats/truth-banks.md) that do not depend on hits, for these particles."""
        return {
            "key": key,
            "pid": self.pid,
            "p": self.p,
            "pt": self.pt,
            "eta": self.eta,
            "phi": self.phi,
            "vertex_x": self.origin[:, 0],
            "vertex_y": self.origin[:, 1],
            "vertex_z": self.origin[:, 2],
            "from_b": self.from_beauty,
            "from_c": self.from_charm,
            "from_strange": self.from_strange,
            "from_signal": self.from_signal,
            "mother_key": self.mother_key,
            "mother_pid": self.mother,
            "dom_key": np.where(self.dom_key < 0, key, self.dom_key),
            "dom_pid": self.dom_pid,
            "dom_pt": self.dom_pt,
            "dom_tau": self.dom_tau,
            "charge": self.charge,
        }
