"""From VELO hits to tracks. In the order of the sequence, each `X.py` beside its kernel `X.cuh`:

sort_by_phi                                                 sorted hits (phi_bins.cuh)
search_by_triplet                                           tracks (seed_tracks.cuh, forward_tracks.cuh,
                                                            triplet_lines.cuh, triplet_search.cuh)
follow_tracks                                               tracks by another search, for vectors of a CPU
                                                            (candidates.cuh)
kill_clones, filter_three_hit_tracks, consolidate_tracks    selection of tracks
kalman_filter                                               their states
"""
