"""Tracks of the whole TPC from segments in its slices."""
