"""Fragments and ODIN from the bytes of a batch."""
