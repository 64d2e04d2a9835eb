"""Lines and histograms computed with NumPy: what the generated kernel does, bit by bit, where there is no compiler."""
