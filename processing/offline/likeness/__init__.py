"""Likeness of two samples: distributions and their Kolmogorov distances."""
