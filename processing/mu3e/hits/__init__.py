"""Hits of a sub-slice by layer and time."""
