"""Detector description: built in, or loaded from geometry files."""

from hltnode.processing.geometry.errors import GeometryError
from hltnode.processing.geometry.magnet import Magnet
from hltnode.processing.geometry.muon import MuonGeometry
from hltnode.processing.geometry.scifi import SciFiGeometry
from hltnode.processing.geometry.ut import UtGeometry
from hltnode.processing.geometry.ut_tables import UtTables
from hltnode.processing.geometry.velo import VeloGeometry

__all__ = [
    "GeometryError",
    "Magnet",
    "MuonGeometry",
    "SciFiGeometry",
    "UtGeometry",
    "UtTables",
    "VeloGeometry",
]
