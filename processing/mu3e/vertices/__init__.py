"""Vertices of three tracks, and windows of time."""
