"""Forward tracking: VELO and VELO-UT tracks followed through the magnet into the SciFi tracker. In the order of the
sequence, each `X.py` beside its kernel `X.cuh`:

    prepare_candidates                 no candidates, SciFi hits found by bins of x (scifi_zones.cuh)
    search_with_ut, search_without_ut  the best SciFi hits of each track (track.cuh: hypothesis.cuh, x_hits.cuh,
                                       stereo_hits.cuh, fit.cuh)
    select_tracks                      long tracks of those candidates that share no hits with a better one

constants.py holds what both searches share.
"""
