"""Simulated events with truth, written as genuine raw banks."""

from hltnode.processing.lhcb.offline.simulation.banks.velo_encoding import VeloEncoding
from hltnode.processing.lhcb.offline.simulation.velo_generator import simulate_events

__all__ = ["VeloEncoding", "simulate_events"]
