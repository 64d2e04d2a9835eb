"""Kernels for any detector."""
