"""Commands on reconstruction and simulation, which use tools of a chain."""
