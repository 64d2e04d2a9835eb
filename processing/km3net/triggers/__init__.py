"""Triggers on the hits of a sub-slice: candidates and windows."""
