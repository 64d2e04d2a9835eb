"""The two halves of the VELO, which move between fills: the odd modules are side A (x > 0), the even ones side C."""

from collections.abc import Mapping
from dataclasses import replace
from types import MappingProxyType

import numpy as np
from numpy.typing import NDArray

from hltnode.processing.lhcb.geometry.ideal_velo import N_MODULES, SENSORS_PER_MODULE
from hltnode.processing.lhcb.geometry.velo import VeloGeometry

SIDES = ("a", "c")
AXES = ("x", "y", "z")
OPENING = "velo_opening"
POSITIONS = tuple(f"velo_{side}_{axis}" for side in SIDES for axis in AXES)
"""Names of the conditions that move one half: `velo_a_x` is the offset of side A in x, mm."""

_IS_A = np.arange(N_MODULES) % 2 == 1
_NONE: Mapping[str, float] = MappingProxyType({})


def module_shifts(values: Mapping[str, float] = _NONE) -> NDArray[np.float64]:
    """Shift of each module from its place in the closed VELO, f64[52, 3], mm.

    values: conditions of the VELO by name, others are ignored. `velo_opening` is the distance by which the halves are
    apart: each moves outwards by half of it. The offsets of a half are added.
    """
    shifts = np.zeros((N_MODULES, len(AXES)))
    opening = values.get(OPENING, 0.0)
    shifts[:, 0] += np.where(_IS_A, 0.5 * opening, -0.5 * opening)
    for side, chosen in zip(SIDES, (_IS_A, ~_IS_A), strict=True):
        shifts[chosen] += [values.get(f"velo_{side}_{axis}", 0.0) for axis in AXES]
    return shifts


def move_sensors(
    module_z: NDArray[np.float32], local_to_global: NDArray[np.float32], shifts: NDArray[np.float64]
) -> None:
    """Move the modules in place: `module_z` f32[52], `local_to_global` f32[208, 12], `shifts` f64[52, 3], all mm."""
    module_z += shifts[:, 2].astype(np.float32)
    local_to_global[:, 9:] += np.repeat(shifts, SENSORS_PER_MODULE, axis=0).astype(np.float32)


def with_positions(velo: VeloGeometry, values: Mapping[str, float]) -> VeloGeometry:
    """The VELO with its halves and the beam line where the conditions say, by name; others are ignored."""
    module_z, ltg = velo.module_z.copy(), velo.ltg.copy()
    move_sensors(module_z, ltg, module_shifts(values))
    beam = {name: values[f"beam_{name}"] for name in ("x", "y", "slope_x", "slope_y") if f"beam_{name}" in values}
    return replace(velo, module_z=module_z, ltg=ltg, beamline=replace(velo.beamline, **beam))
