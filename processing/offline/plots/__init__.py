"""Figures of reports. Needs matplotlib (extra `plot`)."""
