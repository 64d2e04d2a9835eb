"""Commands on reconstruction and simulation, which ask the tools of a chain."""
