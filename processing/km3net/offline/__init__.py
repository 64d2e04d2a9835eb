"""Simulation, validation and display of an underwater telescope; the chain never imports them."""
