"""Effect of the material between the measurements of the fit of long tracks: noise of position and slope."""

from enum import StrEnum

import numpy as np

from hltnode.processing.lhcb.geometry.ideal_ut import LAYER_Z as UT_LAYER_Z
from hltnode.processing.lhcb.geometry.material import is_hit, scattering_angle, slabs
from hltnode.processing.lhcb.parametrisation.forms import Z_VELO, FloatArray
from hltnode.processing.lhcb.parametrisation.scattering import ANGLES, AZIMUTHS

_NEAR_LAYER = 12.0
"""mm: a slab this close to a layer is the material of the layer, behind its hit."""
_HARD_SCATTERS = 1.15
"""Factor of the variances, because scattering has larger tails than a normal distribution."""


class Step(StrEnum):
    """From one measurement to the next."""

    BEFORE_UT = "before_ut"
    """From Z_VELO to the first layer of the UT."""
    UT_LAYER = "ut_layer"
    """From one layer of the UT to the next."""
    MAGNET = "magnet"
    """From the last layer of the UT to the first of the SciFi."""


Noise = dict[Step, FloatArray]
"""f64[3] for p = 1 GeV and a track along z: variance of the position (mm²) where a step ends, covariance of position
and slope (mm), variance of the slope."""


def fit_noise(layer_z: FloatArray) -> Noise:
    """The noise of the steps; layer_z f64[12] of the SciFi. Averaged over tracks of many angles, each scaled to normal
    incidence."""
    first, last = UT_LAYER_Z[0], UT_LAYER_Z[-1]
    ut_layers = _noise(first - _NEAR_LAYER, last - _NEAR_LAYER, last)
    ut_layers[:2] = 0.0
    ut_layers[2] /= len(UT_LAYER_Z) - 1
    return {
        Step.BEFORE_UT: _noise(Z_VELO, first - _NEAR_LAYER, first),
        Step.UT_LAYER: ut_layers,
        Step.MAGNET: _noise(last - _NEAR_LAYER, float(layer_z[0]) - _NEAR_LAYER, float(layer_z[0])),
    }


def _noise(first_z: float, end_z: float, to_z: float) -> FloatArray:
    tx, ty = _directions()
    total = np.zeros(3)
    for slab in slabs():
        if first_z <= slab.z < end_z:
            covered = np.mean(is_hit(slab, tx * slab.z, ty * slab.z))
            lever = to_z - slab.z
            variance = covered * float(scattering_angle(1000.0, slab.thickness)) ** 2
            total += _HARD_SCATTERS * variance * np.array([lever * lever, lever, 1.0])
    return total


def _directions() -> tuple[FloatArray, FloatArray]:
    angle, azimuth = (a.ravel() for a in np.meshgrid(ANGLES, AZIMUTHS, indexing="ij"))
    return angle * np.cos(azimuth), angle * np.sin(azimuth)
