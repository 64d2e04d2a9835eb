"""From VELO banks to hits. In the order of the sequence, each `X.py` beside its kernel `X.cuh`:

estimate_input_size, cluster_limit         upper bound of the clusters of an event, and its limit
hit_offsets                                places of the clusters of each event
decode_retina_clusters, masked_clustering  banks to hits (bank.cuh, super_pixel.cuh)
sparse_ccl                                 the other clustering of super-pixels
"""
