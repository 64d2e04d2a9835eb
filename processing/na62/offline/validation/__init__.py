"""Rings against truth."""
