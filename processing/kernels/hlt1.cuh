// All kernels of the sequence: the one translation unit that each back end compiles.
#pragma once

#include "batch/fragment_offsets.cuh"
#include "velo/cluster_offsets.cuh"
#include "velo/consolidate_tracks.cuh"
#include "velo/decode_retina_clusters.cuh"
#include "velo/estimate_input_size.cuh"
#include "velo/filter_three_hit_tracks.cuh"
#include "velo/kill_clones.cuh"
#include "velo/search_by_triplet.cuh"
#include "velo/sort_by_phi.cuh"

// Every kernel that a back end can launch by name.
#define HLT_KERNELS(X)              \
    X(fragment_offsets)             \
    X(velo_estimate_input_size)     \
    X(velo_cluster_offsets)         \
    X(velo_decode_retina_clusters)  \
    X(velo_sort_by_phi)             \
    X(velo_search_by_triplet)       \
    X(velo_kill_clones)             \
    X(velo_filter_three_hit_tracks) \
    X(velo_consolidate_tracks)
