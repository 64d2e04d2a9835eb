"""What a detector description can be wrong about."""


class GeometryError(ValueError):
    """A geometry file is missing, of the wrong size or holds no possible positions; the message names the file."""
