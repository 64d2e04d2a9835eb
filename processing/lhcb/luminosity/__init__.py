"""Counters of an event for the measurement of luminosity. In the order of the sequence, each `X.py` beside `X.cuh`:

    decode_plume     bank of the luminometer PLUME to ADC values and over-threshold bits
    fill_counters    numbers of objects of all detectors, as a luminosity summary stores them

collections.py declares the data that they share, counters.py the counters with their ranges.
"""
