"""Truth matching: efficiencies, ghosts and primary vertices against Monte Carlo truth; likeness of two samples."""

from hltnode.processing.lhcb.offline.validation.checker.categories import Stage
from hltnode.processing.lhcb.offline.validation.checker.checker import Checker
from hltnode.processing.lhcb.offline.validation.checker.particles import ParticleTable
from hltnode.processing.lhcb.offline.validation.checker.tracks import TrackStates, TrackTable
from hltnode.processing.lhcb.offline.validation.readers.velopix import VelopixError, encode_velopix, read_velopix
from hltnode.processing.lhcb.offline.validation.reports.report import format_report

__all__ = [
    "Checker",
    "ParticleTable",
    "Stage",
    "TrackStates",
    "TrackTable",
    "VelopixError",
    "encode_velopix",
    "format_report",
    "read_velopix",
]
