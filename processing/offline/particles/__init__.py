"""Simulated particles: columns, decays, names, and events of a generator."""
