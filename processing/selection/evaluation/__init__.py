"""Lines and histograms in NumPy, bit-identical to the generated kernel, for machines without a compiler."""
