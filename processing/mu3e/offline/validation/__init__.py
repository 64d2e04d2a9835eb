"""Tracks, vertices and windows against simulated decays."""
