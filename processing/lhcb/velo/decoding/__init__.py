"""VELO banks to hits. In the order of the sequence, each `X.py` beside its kernel `X.cuh`:

estimate_input_size, cluster_limit         how many clusters an event may have, and whether it has too many
hit_offsets                                where they are stored
decode_retina_clusters, masked_clustering  banks to hits (bank.cuh, super_pixel.cuh)
"""
