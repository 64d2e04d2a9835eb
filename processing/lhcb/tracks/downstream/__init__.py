"""Downstream tracks: SciFi seeds without a long track, continued into the UT (docs/physics/downstream-tracks.md). In
the order of the sequence, each `X.py` beside its kernel `X.cuh`:

    search_ut      the best UT hits of each seed
    select_tracks  ghost probability, removal of clones, list of tracks

field.py has the parameters of the field between UT and SciFi, ghost_network.py the network of the ghost probability.
"""
