"""Shared by forward tracking and matching: long tracks (collections.py), the parametrisation of the magnet
(parameters.py, bend.cuh) and the layers of the SciFi tracker (layers.cuh).
"""
