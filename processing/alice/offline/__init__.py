"""Tools beside the chain: simulation, checker, display."""
