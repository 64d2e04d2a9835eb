// All kernels of the sequence: the one translation unit that each back end compiles.
#pragma once

#include "batch/fragment_offsets.cuh"
#include "lines/event_lines.cuh"
#include "odin/odin_decode.cuh"
#include "pv/cleanup.cuh"
#include "pv/extrapolate.cuh"
#include "pv/multi_fit.cuh"
#include "pv/peaks.cuh"
#include "velo/cluster_offsets.cuh"
#include "velo/consolidate_tracks.cuh"
#include "velo/decode_retina_clusters.cuh"
#include "velo/estimate_input_size.cuh"
#include "velo/filter_three_hit_tracks.cuh"
#include "velo/impact_parameter.cuh"
#include "velo/kalman.cuh"
#include "velo/kill_clones.cuh"
#include "velo/masked_clustering.cuh"
#include "velo/search_by_triplet.cuh"
#include "velo/sort_by_phi.cuh"

// Every kernel that a back end can launch by name.
#define HLT_KERNELS(X)              \
    X(fragment_offsets)             \
    X(odin_decode)                  \
    X(velo_estimate_input_size)     \
    X(velo_cluster_offsets)         \
    X(velo_decode_retina_clusters)  \
    X(velo_masked_clustering)       \
    X(velo_sort_by_phi)             \
    X(velo_search_by_triplet)       \
    X(velo_kill_clones)             \
    X(velo_filter_three_hit_tracks) \
    X(velo_consolidate_tracks)      \
    X(velo_kalman_filter)           \
    X(pv_beamline_extrapolate)      \
    X(pv_beamline_peaks)            \
    X(pv_beamline_multi_fit)        \
    X(pv_beamline_cleanup)          \
    X(velo_impact_parameter)        \
    X(event_lines)
