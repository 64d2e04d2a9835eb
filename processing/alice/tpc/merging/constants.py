"""Constants of merging. The fits have those of the tracks of slices."""

from hltnode.processing.alice.tpc.tracks.constants import TRACKLET_CONSTANTS

FIT_CONSTANTS: dict[str, float | int] = {
    **{
        name: TRACKLET_CONSTANTS[name]
        for name in (
            *("y_constant", "y_drift", "y_angle", "z_constant", "z_drift", "z_angle"),
            *("max_sin_phi", "radiation_length", "mass"),
        )
    },
    "max_fit_chi2": 25.0,
}
"""Names and values of the constructor and of the selection (tracks/constants.py)."""
LINK_CONSTANTS: dict[str, float | int] = {
    "distance": 0.1,
    "angle": 0.01,
    "bend": 0.03,
    "z": 0.2,
    "slope": 0.005,
}
"""Standard deviations of differences between two segments of a particle, beyond those of their fits: distance in cm,
angle in rad, relative curvature, z in cm, pz / pT. They allow for matter between the segments."""
