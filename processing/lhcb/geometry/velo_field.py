"""The fringe field of the dipole in the VELO. It is small, but without it tracks of a few GeV miss their vertex by 20
µm."""

from dataclasses import dataclass
from typing import Self

import numpy as np

from hltnode.processing.lhcb.geometry.magnet import Magnet

FIRST_Z, LAST_Z = -300.0, 750.0
"""Region of the measurement of tracks, mm."""
MEV_PER_T_MM = 0.299792458
"""A particle of charge 1 gains this transverse momentum for each T mm along its path."""


@dataclass(frozen=True, slots=True)
class VeloField:
    """By on the axis as `by + gradient * z`: T, T/mm."""

    by: float
    gradient: float

    @classmethod
    def of(cls, magnet: Magnet) -> Self:
        """The best straight-line approximation of the field of the magnet in the VELO."""
        z = np.linspace(FIRST_Z, LAST_Z, 43)
        gradient, by = np.polyfit(z, magnet.field(0.0, 0.0, z)[1], 1)
        return cls(float(by), float(gradient))

    def to_bytes(self) -> bytes:
        """For kernels: x''(z) divided by q/p (MeV/mm) at z = 0, and its change along z (MeV/mm²)."""
        return np.array([-MEV_PER_T_MM * self.by, -MEV_PER_T_MM * self.gradient], "<f4").tobytes()
