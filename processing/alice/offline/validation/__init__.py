"""Tracks against truth."""
