"""Truth matching: efficiencies, ghosts and primary vertices against Monte Carlo truth; likeness of two samples."""

from hltnode.processing.validation.categories import Stage
from hltnode.processing.validation.checker import Checker
from hltnode.processing.validation.particles import ParticleTable
from hltnode.processing.validation.report import format_report
from hltnode.processing.validation.tracks import TrackStates, TrackTable
from hltnode.processing.validation.velopix import VelopixError, encode_velopix, read_velopix

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
