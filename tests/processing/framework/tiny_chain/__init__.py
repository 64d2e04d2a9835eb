"""A chain for an experiment with two sources: one kernel, one line. Tests copy this package out of the tree."""
