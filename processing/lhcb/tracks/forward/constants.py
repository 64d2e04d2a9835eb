"""Constants that the forward searches with and without UT share (docs/physics/long-tracks.md)."""

# mm and MeV. Each error has a term independent of the momentum, and a term that rises with the kink.
FORWARD_CONSTANTS: dict[str, float | int] = {
    "x_window": 0.5,
    "x_window_per_kink": 1.4,
    "stereo_margin": 0.7,
    "max_shift_spread": 7.0,
    "sigma_ty": 3e-4,
    "sigma_ty_per_kink": 7.5e-3,
    "sigma_curvature": 1.5e-7,
    "sigma_curvature_per_kink": 1e-6,
    "sigma_hit": 0.1,
    "hit_scatter_per_kink": 0.67,
    "max_hit_chi2": 16.0,
    "min_hits": 9,
    "max_pairs": 200_000,
    "max_candidates": 12_000,
    "chi2_weight": 0.6,
    "missing_hit_penalty": 4.0,
    "quality_per_kink": 15.0,
}
