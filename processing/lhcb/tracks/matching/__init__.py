"""Matching: seeds of SciFi hits alone, joined to VELO tracks. In the order of the sequence, each `X.py` beside its
kernel `X.cuh`:

    no_forward_tracks, mark_used_hits  SciFi hits used by the forward tracking: none, or those of its tracks
    select_seeding_hits                unused hits, by bins of x (seeding_hits.cuh)
    seed_in_x, seed_in_y               seeds of x layers, and of all layers (seed_fit.cuh)
    match_seeds                        pairs of a VELO track and a seed that cross in the magnet (ut_confirmation.cuh)
    append_matched                     long tracks of the best pairs

seeding_tables.py holds the tables of the curved tracks that seeds follow.
"""
