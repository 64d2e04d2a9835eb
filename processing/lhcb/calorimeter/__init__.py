"""The electromagnetic calorimeter. In the order of the sequence, each `X.py` beside its kernel `X.cuh`:

    decode_cells     banks to the ADC value of each cell (bank.cuh)
    find_clusters    seeds and their neighbours to clusters
    find_electrons   energy of long tracks in the calorimeter, and of their bremsstrahlung (cells.cuh)
    measure_showers  energy, place and shape of the shower of a long track
    identify_electrons  response of the electron network (electron_network.py)
    pair_photons     pairs of narrow clusters
    pair_electrons   vertices of two electrons

collections.py declares the data that they share.
"""
