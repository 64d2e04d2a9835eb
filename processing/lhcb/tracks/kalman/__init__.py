"""Kalman fits of long tracks with their momentum."""
