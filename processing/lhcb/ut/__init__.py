"""The UT. In the order of the sequence, each `X.py` beside its kernel `X.cuh`:

    estimate_input_size, hit_offsets    how many hits an event has, and where they are stored
    decode_banks                        banks to hits sorted by sector group (bank.cuh)
    search_tracks                       for each VELO track the hits that continue it (windows.cuh, fits.cuh)
    select_tracks                       the VELO-UT tracks that are kept

collections.py declares what they share.
"""
