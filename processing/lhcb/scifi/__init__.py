"""The SciFi tracker: from raw banks to hits sorted by x in each zone. In the order of the sequence:

    hit_offsets        how many hits an event may have, and where they are stored
    decode_clusters    banks to hits in order (bank.cuh, hit_columns.cuh, hits_of_words.cuh; on the CPU
                       hits_of_banks_cpu.h)

collections.py declares what they write. The number of words comes from raw_data/global_event_cut.
"""
