"""What lines compute: expressions with kinds and units, recorded from Python, as text and back, and their functions."""
