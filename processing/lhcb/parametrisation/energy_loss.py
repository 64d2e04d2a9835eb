"""The energy that particles lose before the magnet has measured their momentum."""

import numpy as np

from hltnode.processing.lhcb.geometry.ideal_velo import N_ROWS, PIXEL_PITCH, column_edges
from hltnode.processing.lhcb.geometry.magnet import Field, bending_power
from hltnode.processing.lhcb.geometry.material import is_hit, slabs
from hltnode.processing.lhcb.geometry.velo import VeloGeometry
from hltnode.processing.lhcb.parametrisation.forms import Z_VELO, FloatArray
from hltnode.processing.lhcb.parametrisation.scattering import ANGLES

_AZIMUTHS = np.radians(np.arange(7.5, 360.0, 15.0))
_LAST_Z = 9500.0
"""mm: end of the field that bends tracks before their last hit."""


def median_energy_loss(field: Field) -> float:
    """Energy loss of a minimum-ionising particle from z = 0 to the magnet, MeV: the median over directions, evenly
    spread in pseudorapidity and azimuth.

    The mean would be too large for most particles: the few that cross the beam pipe lose 7 MeV more. A slab counts with
    the fraction of the bending power behind it, because the kink belongs to the momentum averaged over the field. The
    modules of the VELO end at their sensors: most tracks leave them before the last module.
    """
    angle, azimuth = (a.ravel() for a in np.meshgrid(ANGLES, _AZIMUTHS, indexing="ij"))
    tx, ty = angle * np.cos(azimuth), angle * np.sin(azimuth)
    whole = bending_power(field, 0.0, _LAST_Z)
    (module_loss,) = {slab.energy_loss for slab in slabs() if slab.name == "VELO module"}
    loss = module_loss * _sensors_crossed(tx, ty)
    for slab in slabs():
        if Z_VELO < slab.z < _LAST_Z:
            behind = bending_power(field, slab.z, _LAST_Z) / whole
            loss += behind * np.where(is_hit(slab, tx * slab.z, ty * slab.z), slab.energy_loss, 0.0)
    return float(np.median(loss * np.sqrt(1.0 + tx * tx + ty * ty)))


def _sensors_crossed(tx: FloatArray, ty: FloatArray) -> FloatArray:
    """Number of VELO sensors that straight tracks from z = 0 cross, f64[n]."""
    crossed = np.zeros_like(tx)
    for sensor in VeloGeometry.builtin().ltg.astype(np.float64):
        z = sensor[11]
        if z > 0.0:
            to_global = np.array([[sensor[0], sensor[1]], [sensor[3], sensor[4]]])
            x, y = np.linalg.solve(to_global, np.stack([tx * z - sensor[9], ty * z - sensor[10]]))
            crossed += (x >= 0.0) & (x < column_edges()[-1]) & (y >= 0.0) & (y < N_ROWS * PIXEL_PITCH)
    return crossed
