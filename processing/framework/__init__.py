"""Detector-independent parts: declarations, engine, batches, back ends."""
