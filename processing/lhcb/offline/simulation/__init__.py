"""Simulated events with truth, written as genuine raw banks."""
