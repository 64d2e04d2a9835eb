"""Vertices of two long tracks away from the primary vertices."""
