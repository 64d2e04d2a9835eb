"""Expressions of lines: recorded from Python, with kinds and units, as text and back; and their functions."""
