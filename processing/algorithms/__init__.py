"""Kernels that any detector may use."""
