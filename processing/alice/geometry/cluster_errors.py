"""Resolution and widths of clusters, by drift length, pad length and angle of the track."""

import numpy as np
from numpy.typing import NDArray

from hltnode.processing.alice.detector_constants import (
    DIFFUSION,
    ELECTRONS_PER_CM,
    GAIN_FLUCTUATION,
    INTRINSIC_SIGMA,
    PAD_RESPONSE,
    PRIMARY_ELECTRONS_PER_CM,
    SHAPING_WIDTH,
)

Floats = NDArray[np.float64]

INTRINSIC_VARIANCE = INTRINSIC_SIGMA**2
"""cm2."""
DRIFT_VARIANCE = DIFFUSION**2 * GAIN_FLUCTUATION / ELECTRONS_PER_CM
"""cm2 for a drift of 1 cm and a pad of 1 cm: the mean place of the electrons of a pad."""
ANGLE_VARIANCE = 1.0 / (12.0 * PRIMARY_ELECTRONS_PER_CM)
"""cm2 for a pad of 1 cm and a tangent of 1: the mean place of the ionisation along the track."""


def cluster_variances(pad: Floats, drift: Floats, tan_y: Floats, tan_z: Floats) -> tuple[Floats, Floats]:
    """Squares of the resolutions of y and z, in cm2.

    pad: length of the pads in cm; drift: cm to the pads; tan_y, tan_z: dy/dx, dz/dx. INTRINSIC + DRIFT * drift / pad +
    ANGLE * pad * tan^2, the three terms of the resolution of a TPC (J. Alme et al., NIM A 622 (2010) 316, section 8;
    W. Blum, W. Riegler, L. Rolandi, "Particle Detection with Drift Chambers", 2nd edition, chapter 7). The resolution
    is that of simulated clusters.
    """
    common = INTRINSIC_VARIANCE + DRIFT_VARIANCE * np.maximum(drift, 0.0) / pad
    return common + ANGLE_VARIANCE * pad * tan_y**2, common + ANGLE_VARIANCE * pad * tan_z**2


def cluster_widths(pad: Floats, drift: Floats, tan_y: Floats, tan_z: Floats) -> tuple[Floats, Floats]:
    """Standard deviations in cm of the charge of a cluster in y and z: response, diffusion, inclination."""
    spread = DIFFUSION**2 * np.maximum(drift, 0.0)
    return (
        np.sqrt(PAD_RESPONSE**2 + spread + (pad * tan_y) ** 2 / 12.0),
        np.sqrt(SHAPING_WIDTH**2 + spread + (pad * tan_z) ** 2 / 12.0),
    )
