"""A chain of an experiment with two sources: one kernel, one line. Tests copy this package out of the tree."""
