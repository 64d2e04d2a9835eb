"""The VELO: clusters, tracks, Kalman fit. decoding/ makes hits of banks, tracking/ makes tracks of hits;
collections.py declares what they share, hit.cuh how a hit is stored.
"""
