"""Simulation, validation and display of NA62's RICH; the chain never imports them."""
