"""Detector description: built in, or loaded from geometry files."""

from hltnode.processing.geometry.errors import GeometryError
from hltnode.processing.geometry.velo import VeloGeometry

__all__ = ["GeometryError", "VeloGeometry"]
