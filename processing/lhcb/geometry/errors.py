"""Errors of a detector description."""


class GeometryError(ValueError):
    """A geometry file is missing, has the wrong size or impossible positions; the message names the file."""
