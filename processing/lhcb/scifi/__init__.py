"""The SciFi tracker: from raw banks to hits sorted by x in each zone. In the order of the sequence:

    hit_offsets        upper bound of the hits of an event, and their places
    decode_clusters    banks to hits in order (bank.cuh, hit_columns.cuh, hits_of_words.cuh; on the CPU
                       hits_of_banks_cpu.h)

collections.py declares their output. The number of words comes from raw_data/global_event_cut.
"""
