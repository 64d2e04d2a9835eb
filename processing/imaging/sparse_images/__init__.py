"""Sparse images: components of lists of pixels, without an image in memory."""
