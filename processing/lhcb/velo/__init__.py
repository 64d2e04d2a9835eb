"""The VELO: clusters, tracks, Kalman fit, impact parameters."""
