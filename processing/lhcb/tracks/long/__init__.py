"""What forward tracking and matching share: long tracks (collections.py), the parametrisation of the magnet
(parameters.py, bend.cuh) and the layers of the SciFi tracker (layers.cuh).
"""
