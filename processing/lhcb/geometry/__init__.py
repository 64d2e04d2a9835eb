"""Detector description: built in, or loaded from geometry files."""

from hltnode.processing.lhcb.geometry.ecal import EcalGeometry
from hltnode.processing.lhcb.geometry.errors import GeometryError
from hltnode.processing.lhcb.geometry.magnet import Magnet
from hltnode.processing.lhcb.geometry.muon import MuonGeometry
from hltnode.processing.lhcb.geometry.scifi import SciFiGeometry
from hltnode.processing.lhcb.geometry.ut import UtGeometry
from hltnode.processing.lhcb.geometry.ut_tables import UtTables
from hltnode.processing.lhcb.geometry.velo import VeloGeometry

__all__ = [
    "EcalGeometry",
    "GeometryError",
    "Magnet",
    "MuonGeometry",
    "SciFiGeometry",
    "UtGeometry",
    "UtTables",
    "VeloGeometry",
]
