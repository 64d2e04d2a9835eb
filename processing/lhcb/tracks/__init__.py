"""Tracks through several detectors.

long      shared by both searches: the columns of long tracks, the parameters of the field
forward   VELO and UT tracks extended into the SciFi
looking_forward  the same by triplets of SciFi hits, as in the thesis of that name
matching  SciFi seeds matched with VELO tracks
kalman    Kalman filters of long tracks, their impact parameters and ghost probability
downstream  seeds that no long track uses, continued into the UT
"""
