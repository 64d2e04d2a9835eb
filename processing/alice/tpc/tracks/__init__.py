"""Tracks of each slice: tracklets from seeds, the choice between those that share clusters, and their parameters."""
