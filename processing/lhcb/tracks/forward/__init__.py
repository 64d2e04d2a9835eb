"""Forward tracking: VELO and VELO-UT tracks followed through the magnet into the SciFi tracker. In the order of the
sequence, each `X.py` beside its kernel `X.cuh`:

    prepare_candidates                 reset of the candidates, index of SciFi hits by x (scifi_zones.cuh)
    search_with_ut, search_without_ut  the best SciFi hits of each track (track.cuh: hypothesis.cuh, x_hits.cuh,
                                       stereo_hits.cuh, fit.cuh)
    select_tracks                      long tracks of the candidates that own enough of their hits

constants.py holds the constants of both searches.
"""
