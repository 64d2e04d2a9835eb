"""The material that particles cross: beam pipe and main material of each detector, for multiple scattering and energy
loss.

A simple model: thin slabs at the z of the detectors, uniform in x and y outside the beam pipe. Thickness in radiation
lengths (X0) at normal incidence. Sources: VELO upgrade TDR (LHCb-TDR-013), tracker upgrade TDR (LHCb-TDR-015), PID
upgrade TDR (LHCb-TDR-014), the LHCb detector paper (JINST 3 (2008) S08005), Review of Particle Physics (material
constants, multiple scattering).

The published values give too little scattering, because they lack flanges, supports and beam pipe. The thickness of
VELO modules and foil, exit window, RICH1, beam pipe, UT, air and SciFi was tuned: the deviations of long particles from
their origin, from the UT, from the SciFi slope and from the true momentum are those of the seven real simulated events
(docs/simulation.md).
"""

from dataclasses import dataclass
from enum import StrEnum

import numpy as np
from numpy.typing import ArrayLike, NDArray

from hltnode.processing.lhcb.geometry import ideal_scifi, ideal_ut, ideal_velo


class Substance(StrEnum):
    """Material of a slab, for its energy loss."""

    SILICON = "silicon"
    ALUMINIUM = "aluminium"
    BERYLLIUM = "beryllium"
    POLYSTYRENE = "polystyrene"
    CARBON_FIBRE = "carbon fibre"
    AIR = "air"
    LEAD_SCINTILLATOR = "lead and scintillator"
    IRON = "iron"


# Mean energy loss of a minimum-ionising particle over one radiation length, MeV: dE/dx x X0 of the material.
_LOSS_PER_X0 = {
    Substance.SILICON: 36.3,
    Substance.ALUMINIUM: 38.8,
    Substance.BERYLLIUM: 104.0,
    Substance.POLYSTYRENE: 84.7,
    Substance.CARBON_FIBRE: 74.4,
    Substance.AIR: 66.6,
    Substance.LEAD_SCINTILLATOR: 11.5,
    Substance.IRON: 20.1,
}


@dataclass(frozen=True, slots=True, kw_only=True)
class Slab:
    """A thin layer of material across the beam.

    `z` (mm) of its middle; `thickness` in X0; `hole` and `edge`: radii (mm) inside and beyond which it is missing;
    `side`: +1 or -1 if it covers only x > 0 or x < 0, otherwise 0; `built`: X0 for the energy loss, if different from
    the thickness.
    """

    name: str
    z: float
    thickness: float
    substance: Substance
    hole: float
    edge: float = np.inf
    side: int = 0
    built: float | None = None

    @property
    def energy_loss(self) -> float:
        """Mean loss of a minimum-ionising particle at normal incidence, MeV."""
        return (self.thickness if self.built is None else self.built) * _LOSS_PER_X0[self.substance]


@dataclass(frozen=True, slots=True, kw_only=True)
class PipeSection:
    """A cone of beam pipe between two z (mm): half opening angle (rad, apex at z = 0), wall (mm), X0 of it (mm)."""

    first_z: float
    last_z: float
    angle: float
    wall: float
    radiation_length: float
    substance: Substance

    def thickness(self, theta: NDArray[np.float64]) -> NDArray[np.float64]:
        """X0 of the wall for particles at polar angles theta, which cross it at theta - angle."""
        slant = np.abs(np.sin(theta - self.angle))
        return self.wall / self.radiation_length / np.maximum(slant, 1e-3)


VELO_MODULE = 0.0130  # X0
_VELO_MODULE_BUILT = 0.0080  # two layers of 200 um sensor and ASIC, substrate with cooling
VELO_SIDE = {0: -1, 1: 1}  # modules of even number are at x < 0
RF_FOIL = 0.0090  # X0 per crossing: 0.25 mm of aluminium (0.0032), crossed at small angles
VELO_WINDOW = 0.065
RICH1 = 0.105  # gas, mirrors, quartz window
PIPE = 0.07  # crossed at 10 to 27 mrad, at the end of its cone of 25 mrad
UT_LAYER = 0.018
MAGNET_AIR = 0.0204  # 4.5 m
SCIFI_LAYER = 0.0045
RICH2 = 0.150
CALORIMETERS = 55.0  # ECAL 25 X0, HCAL 5.6 interaction lengths
MUON_FILTER = 45.5  # 800 mm of iron

_BERYLLIUM_X0, _STEEL_X0 = 352.8, 17.6  # mm

BEAM_PIPE = (
    PipeSection(
        first_z=900.0,
        last_z=2250.0,
        angle=0.025,
        wall=1.0,
        radiation_length=_BERYLLIUM_X0,
        substance=Substance.BERYLLIUM,
    ),
    PipeSection(
        first_z=2250.0,
        last_z=13_100.0,
        angle=0.010,
        wall=1.8,
        radiation_length=_BERYLLIUM_X0,
        substance=Substance.BERYLLIUM,
    ),
    PipeSection(
        first_z=13_100.0,
        last_z=19_000.0,
        angle=0.010,
        wall=3.5,
        radiation_length=_STEEL_X0,
        substance=Substance.IRON,
    ),
)


def slabs() -> tuple[Slab, ...]:
    """All slabs in ascending order of z: VELO modules, exit window, RICH1, UT, air, SciFi, RICH2, calorimeters, muon
    filters.

    The RF foil is not a slab: its corrugations follow the modules, so `RF_FOIL` counts once, in addition to the
    modules, for a particle that leaves the beam vacuum.
    """
    found = [
        Slab(
            name="VELO module",
            z=float(z),
            thickness=VELO_MODULE,
            substance=Substance.SILICON,
            hole=ideal_velo.INNER_EDGE,
            side=VELO_SIDE[module % 2],
            built=_VELO_MODULE_BUILT,
        )
        for module, z in enumerate(ideal_velo.module_z())
    ]
    found += [
        Slab(name="VELO exit window", z=835.0, thickness=VELO_WINDOW, substance=Substance.ALUMINIUM, hole=8.0),
        Slab(name="RICH1", z=1600.0, thickness=RICH1, substance=Substance.CARBON_FIBRE, hole=20.0),
        Slab(name="beam pipe", z=1700.0, thickness=PIPE, substance=Substance.BERYLLIUM, hole=17.0, edge=46.0),
        Slab(name="RICH2", z=10_500.0, thickness=RICH2, substance=Substance.CARBON_FIBRE, hole=110.0),
        Slab(
            name="calorimeters", z=13_500.0, thickness=CALORIMETERS, substance=Substance.LEAD_SCINTILLATOR, hole=300.0
        ),
    ]
    found += [
        Slab(name="UT layer", z=z, thickness=UT_LAYER, substance=Substance.SILICON, hole=33.0) for z in ideal_ut.LAYER_Z
    ]
    found += [
        Slab(name="air", z=z, thickness=MAGNET_AIR / 3, substance=Substance.AIR, hole=0.0) for z in (3500, 5000, 6500)
    ]
    found += [
        Slab(name="SciFi layer", z=station + layer, thickness=SCIFI_LAYER, substance=Substance.POLYSTYRENE, hole=100.0)
        for station in ideal_scifi.STATION_Z
        for layer in ideal_scifi.LAYER_Z
    ]
    # Between M2, M3, M4 and M5.
    found += [
        Slab(name="muon filter", z=z, thickness=MUON_FILTER, substance=Substance.IRON, hole=300.0)
        for z in (15_870.0, 17_070.0, 18_270.0)
    ]
    return tuple(sorted(found, key=lambda slab: slab.z))


def radiation_lengths(x: ArrayLike, y: ArrayLike, first_z: float, last_z: float) -> NDArray[np.float64]:
    """X0 of all slabs between two z for particles along z at x, y (mm), shape of x and y."""
    px, py = np.broadcast_arrays(np.asarray(x, np.float64), np.asarray(y, np.float64))
    total = np.zeros(px.shape)
    for slab in slabs():
        if first_z <= slab.z < last_z:
            total += np.where(is_hit(slab, px, py), slab.thickness, 0.0)
    return total


def is_hit(slab: Slab, x: ArrayLike, y: ArrayLike) -> NDArray[np.bool_]:
    """True for places (mm) in the plane of a slab that it covers."""
    px = np.asarray(x, np.float64)
    radius = np.hypot(px, y)
    covered: NDArray[np.bool_] = (radius >= slab.hole) & (radius < slab.edge) & (px * slab.side >= 0.0)
    return covered


def scattering_angle(p: ArrayLike, thickness: ArrayLike, *, beta: ArrayLike = 1.0) -> NDArray[np.float64]:
    """RMS projected angle (rad) of scattering, by Highland's formula: p in MeV/c, thickness in X0, unit charge.

    The logarithm of the formula applies to all material that a particle crosses. From the collision to the calorimeters
    this is about one radiation length, for which the logarithm vanishes. For single slabs it would reduce the angle by
    up to 20 %. So slabs of less than one radiation length are computed without it, and their variances add up.
    """
    x = np.asarray(thickness, np.float64)
    beta_p = np.asarray(beta, np.float64) * np.asarray(p, np.float64)
    angle: NDArray[np.float64] = 13.6 / beta_p * np.sqrt(x) * (1.0 + 0.038 * np.log(np.maximum(x, 1.0)))
    return angle
