"""Truth matching: efficiencies, ghosts and primary vertices against Monte Carlo truth; likeness of two samples."""
