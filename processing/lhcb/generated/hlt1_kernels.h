// Written by tools/generate_device_headers.py from lhcb/hlt1.py. Do not edit.
// clang-format off
#pragma once

#include "algorithms/fragment_offsets.cuh"
#include "lhcb/lines/event_lines.cuh"
#include "lhcb/primary_vertices/cleanup.cuh"
#include "lhcb/primary_vertices/extrapolate.cuh"
#include "lhcb/primary_vertices/impact_parameter.cuh"
#include "lhcb/primary_vertices/multi_fit.cuh"
#include "lhcb/primary_vertices/peaks.cuh"
#include "lhcb/raw_data/global_event_cut.cuh"
#include "lhcb/raw_data/odin_decode.cuh"
#include "lhcb/scifi/count_hits.cuh"
#include "lhcb/scifi/decode_clusters.cuh"
#include "lhcb/scifi/hit_offsets.cuh"
#include "lhcb/ut/decode_banks.cuh"
#include "lhcb/ut/estimate_input_size.cuh"
#include "lhcb/ut/hit_offsets.cuh"
#include "lhcb/ut/search_tracks.cuh"
#include "lhcb/ut/select_tracks.cuh"
#include "lhcb/velo/cluster_offsets.cuh"
#include "lhcb/velo/consolidate_tracks.cuh"
#include "lhcb/velo/decode_retina_clusters.cuh"
#include "lhcb/velo/estimate_input_size.cuh"
#include "lhcb/velo/filter_three_hit_tracks.cuh"
#include "lhcb/velo/global_event_cut.cuh"
#include "lhcb/velo/kalman_filter.cuh"
#include "lhcb/velo/kill_clones.cuh"
#include "lhcb/velo/masked_clustering.cuh"
#include "lhcb/velo/search_by_triplet.cuh"
#include "lhcb/velo/sort_by_phi.cuh"

#define HLT_KERNELS(X) \
    X(fragment_offsets) \
    X(velo_estimate_input_size) \
    X(velo_global_event_cut) \
    X(velo_cluster_offsets) \
    X(odin_decode) \
    X(velo_decode_retina_clusters) \
    X(velo_masked_clustering) \
    X(velo_sort_by_phi) \
    X(velo_search_by_triplet) \
    X(velo_kill_clones) \
    X(velo_filter_three_hit_tracks) \
    X(velo_consolidate_tracks) \
    X(velo_kalman_filter) \
    X(pv_beamline_extrapolate) \
    X(pv_beamline_peaks) \
    X(pv_beamline_multi_fit) \
    X(pv_beamline_cleanup) \
    X(velo_impact_parameter) \
    X(event_lines) \
    X(global_event_cut) \
    X(ut_estimate_input_size) \
    X(ut_hit_offsets) \
    X(scifi_count_hits) \
    X(scifi_hit_offsets) \
    X(ut_decode_banks) \
    X(ut_search_tracks) \
    X(ut_select_tracks) \
    X(scifi_decode_clusters)
