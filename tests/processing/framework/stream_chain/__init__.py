"""A chain without a trigger signal: two sources, one kernel, windows around coincidences. Tests copy this package."""
