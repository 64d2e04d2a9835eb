"""The UT. In the order of the sequence, each `X.py` beside its kernel `X.cuh`:

    estimate_input_size, hit_offsets    number of hits of an event, and their places
    decode_banks                        banks to hits sorted by sector group (bank.cuh)
    search_tracks                       hits that continue each VELO track (windows.cuh, fits.cuh)
    select_tracks                       the selected VELO-UT tracks

collections.py declares the data that they share.
"""
