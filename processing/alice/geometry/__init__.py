"""Rows and slices of the TPC, and the magnetic field."""
