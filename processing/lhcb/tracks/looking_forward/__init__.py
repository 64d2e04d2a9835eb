"""Looking Forward (Cámpora Pérez, thesis, section 6.2): VELO-UT tracks continued into the SciFi by triplets of x hits,
an alternative to the folder forward. In the order of the sequence, each `X.py` beside its kernel `X.cuh`:

    find_x_tracks    windows, candidates, triplets, and the best two sets of x hits of each VELO-UT track
    complete_tracks  missing x hits, stereo hits, the fit, and the best long track of each VELO-UT track

triplets.cuh compares triplets of hits, half_precision.cuh rounds their coordinates as tensor cores do.
prediction.cuh has what the VELO-UT track predicts. collections.py has the sets of x hits, constants.py the constants of
both kernels.
"""
