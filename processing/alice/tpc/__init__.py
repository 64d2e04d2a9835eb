"""Tracks of the TPC in each slice: clusters sorted by row and place, seeds of linked clusters, Kalman fits."""
