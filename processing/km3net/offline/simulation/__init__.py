"""A simulated stream of hits: background, and muons with truth."""
