"""Truth matching: efficiencies, ghosts and primary vertices against Monte Carlo truth."""

from hltnode.processing.validation.checker import Checker
from hltnode.processing.validation.report import format_report
from hltnode.processing.validation.velopix import VelopixError, encode_velopix, read_velopix

__all__ = ["Checker", "VelopixError", "encode_velopix", "format_report", "read_velopix"]
