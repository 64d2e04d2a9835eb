"""Constants of tracklets and of their Kalman filter. The constructor and the selection need the same values."""

from hltnode.processing.alice.detector_constants import CHARGED_PION_MASS
from hltnode.protocol.alice.tpc_banks import N_ROWS

TRACKLET_CONSTANTS: dict[str, float | int] = {
    "max_missed_rows": 4,
    "min_clusters": 10,
    "max_seed_chi2": 50.0,
    "max_chi2": 50.0,
    "max_outlier_chi2": 1000.0,
    "y_constant": 4.0e-4,
    "y_drift": 2.69e-5,
    "y_angle": 5.95e-3,
    "z_constant": 4.0e-4,
    "z_drift": 2.69e-5,
    "z_angle": 5.95e-3,
    "max_sin_phi": 0.99,
    "radiation_length": 30000.0,
    "mass": CHARGED_PION_MASS,
}
"""max_missed_rows: a tracklet or a track ends after more consecutive rows without a cluster. min_clusters: of a kept
tracklet, and of a track. max_seed_chi2: for each degree of freedom of a seed. max_chi2: of a cluster that is added.
max_outlier_chi2: of a cluster that the way down keeps.
max_sin_phi: a track ends where the sine of its angle to the x axis is larger. radiation_length: of the gas, cm. mass:
GeV/c2, of the particle whose multiple scattering is assumed.

y_constant, y_drift, y_angle: square of the resolution in y, cm2: a constant, a part for each cm of drift over the
length of the pad in cm, and a part for the length of the pad times the square of the tangent of the angle to the x
axis. z_constant, z_drift, z_angle: the same in z, with the slope of z to x. The defaults are the resolution of
simulated clusters: 0.2 mm, diffusion of 0.22 mm per root of cm, 36 electrons per cm of which 14 are primary ones."""
ALLOWED = {"min_clusters": range(3, N_ROWS + 1)}
"""A circle needs three clusters."""
