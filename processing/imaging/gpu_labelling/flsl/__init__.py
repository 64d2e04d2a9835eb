"""FLSL: one thread for each run of pixels; 4- or 8-connected."""
