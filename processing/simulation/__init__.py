"""Simulated events with truth, written as genuine raw banks."""

from hltnode.processing.simulation.velo_generator import VeloEncoding, simulate_events

__all__ = ["VeloEncoding", "simulate_events"]
