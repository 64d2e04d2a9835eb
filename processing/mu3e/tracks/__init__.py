"""Triplets of hits, their fit, and tracks."""
