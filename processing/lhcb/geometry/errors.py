"""Errors of a detector description."""


class GeometryError(ValueError):
    """A geometry file is missing, of the wrong size or holds no possible positions; the message names the file."""
