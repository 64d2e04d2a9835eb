"""Vertices of two downstream tracks: K0S, Λ and converted photons that decay between VELO and UT."""
