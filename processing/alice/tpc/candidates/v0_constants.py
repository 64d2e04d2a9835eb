"""Constants of V0 candidates. Both kernels that pair tracks have them."""

V0_CONSTANTS: dict[str, float | int] = {
    "max_dca": 1.0,
    "min_radius": 2.0,
    "max_radius": 85.0,
    "max_ahead": 5.0,
    "min_pointing": 0.99,
    "min_larger_significance": 4.0,
    "kaon_window": 0.03,
    "lambda_window": 0.012,
}
"""max_dca: cm between the tracks. min_radius, max_radius: cm of the candidate from the beam line. max_ahead: cm by
which it may lie behind the innermost cluster of a track, in the direction of flight. min_pointing: cosine in the
transverse plane. min_larger_significance: distance of the beam line over its error, of one of the tracks at least.
kaon_window, lambda_window: GeV/c2 around a mass; a candidate is in one of three windows."""
