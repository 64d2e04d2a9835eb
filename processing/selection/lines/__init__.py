"""Declarations: inputs of a detector, lines and histograms on them, scalers, and decisions."""
