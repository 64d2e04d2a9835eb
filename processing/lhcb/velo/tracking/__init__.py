"""VELO hits to tracks. In the order of the sequence, each `X.py` beside its kernel `X.cuh`:

sort_by_phi                                                 hits in order (phi_bins.cuh)
search_by_triplet                                           tracks (seed_tracks.cuh, forward_tracks.cuh,
                                                            triplet_lines.cuh, triplet_search.cuh)
follow_tracks                                               tracks too, in vectors of the CPU (candidates.cuh)
kill_clones, filter_three_hit_tracks, consolidate_tracks    the tracks that are kept
kalman_filter                                               their states
"""
