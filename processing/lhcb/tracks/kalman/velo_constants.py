"""Constants of VELO hits and of the material between them, for the fits of long tracks."""

VELO_FILTER = {
    "hit_variance": 0.0125**2,
    "start_slope_variance": 0.01,
    "module_scattering": 2.0,
    "foil_scattering": 0.6,
    "step_position": 0.643**2,
    "step_both": 0.526,
}
"""mm², and for p = 1 MeV the variance of the angle of scattering at normal incidence (MeV²), of a module and
additionally for a hit behind the RF foil; the noise of a step dz is that of the slope times (position dz², both dz,
1)."""
