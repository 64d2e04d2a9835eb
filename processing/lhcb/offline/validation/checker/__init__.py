"""Efficiencies and resolutions against Monte Carlo truth."""
