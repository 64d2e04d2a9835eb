"""Candidates against simulated muons."""
