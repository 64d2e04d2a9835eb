"""Hits of a sub-slice in the order of time."""
