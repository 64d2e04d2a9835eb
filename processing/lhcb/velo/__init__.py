"""The VELO: clusters, tracks, Kalman fit. In the order of the sequence, each `X.py` beside its kernel `X.cuh`:

    estimate_input_size, cluster_limit         how many clusters an event may have, and whether it has too many
    cluster_offsets                            where they are stored
    decode_retina_clusters, masked_clustering  banks to hits (bank.cuh, hit.cuh, super_pixel.cuh)
    sort_by_phi                                hits in order (phi_bins.cuh)
    search_by_triplet                          tracks (seed_tracks.cuh, forward_tracks.cuh, triplet_lines.cuh,
                                               triplet_search.cuh)
    kill_clones, filter_three_hit_tracks, consolidate_tracks    the tracks that are kept
    kalman_filter                              their states

collections.py declares what they share.
"""
