"""The VELO: clusters, tracks, Kalman fit. decoding/ turns banks into hits, tracking/ turns hits into tracks.
collections.py declares the data that they share; hit.cuh computes the position of a hit.
"""
