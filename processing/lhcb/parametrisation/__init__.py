"""Parametrisations of the magnet for the long tracking, computed from detector description and field."""
