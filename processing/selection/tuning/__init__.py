"""Cuts of many lines at once: the best efficiencies of signals under a cap on the rate of all lines."""
