"""Simulation, validation and pictures; the chain imports none of them."""
