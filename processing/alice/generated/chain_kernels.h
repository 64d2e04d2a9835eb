// Written by tools/generate_device_headers.py from alice/chain.py. Do not edit.
// clang-format off
#pragma once

#include "algorithms/copy_list.cuh"
#include "algorithms/fragment_offsets.cuh"
#include "algorithms/list_offsets.cuh"
#include "alice/tpc/candidates/count_v0s.cuh"
#include "alice/tpc/candidates/describe_v0_tracks.cuh"
#include "alice/tpc/candidates/find_jets.cuh"
#include "alice/tpc/candidates/find_v0s.cuh"
#include "alice/tpc/candidates/sort_v0_tracks.cuh"
#include "alice/tpc/clusters/find_slices.cuh"
#include "alice/tpc/clusters/place_clusters.cuh"
#include "alice/tpc/clusters/sort_clusters.cuh"
#include "alice/tpc/merging/fit/fit_merged_tracks.cuh"
#include "alice/tpc/merging/links/cut_chains.cuh"
#include "alice/tpc/merging/links/find_clones.cuh"
#include "alice/tpc/merging/links/find_turns.cuh"
#include "alice/tpc/merging/links/insert_segments.cuh"
#include "alice/tpc/merging/links/join_segments.cuh"
#include "alice/tpc/merging/links/link_free_ends.cuh"
#include "alice/tpc/merging/links/link_segments.cuh"
#include "alice/tpc/merging/links/sort_free_ends.cuh"
#include "alice/tpc/merging/segments/describe_segments.cuh"
#include "alice/tpc/merging/segments/keep_places.cuh"
#include "alice/tpc/merging/segments/sort_segments.cuh"
#include "alice/tpc/schedules/begin_tracklets.cuh"
#include "alice/tpc/schedules/construct_canonical.cuh"
#include "alice/tpc/schedules/construct_from_pool.cuh"
#include "alice/tpc/schedules/end_tracklets.cuh"
#include "alice/tpc/schedules/extend_tracklets.cuh"
#include "alice/tpc/schedules/turn_tracklets.cuh"
#include "alice/tpc/seeds/clean_links.cuh"
#include "alice/tpc/seeds/find_neighbours.cuh"
#include "alice/tpc/seeds/find_start_hits.cuh"
#include "alice/tpc/tracks/collect_tracks.cuh"
#include "alice/tpc/tracks/construct_tracklets.cuh"
#include "alice/tpc/tracks/select_tracks.cuh"

#define HLT_KERNELS(X) \
    X(fragment_offsets) \
    X(tpc_find_slices) \
    X(tpc_place_clusters) \
    X(tpc_sort_clusters) \
    X(tpc_find_neighbours) \
    X(tpc_clean_links) \
    X(tpc_find_start_hits) \
    X(tpc_construct_tracklets) \
    X(tpc_select_tracks) \
    X(tpc_keep_places) \
    X(tpc_collect_tracks) \
    X(tpc_describe_segments) \
    X(tpc_sort_segments) \
    X(tpc_find_clones) \
    X(tpc_link_segments) \
    X(tpc_sort_free_ends) \
    X(tpc_link_free_ends) \
    X(tpc_insert_segments) \
    X(tpc_cut_chains) \
    X(tpc_find_turns) \
    X(tpc_join_segments) \
    X(tpc_fit_merged_tracks) \
    X(tpc_find_jets) \
    X(tpc_describe_v0_tracks) \
    X(tpc_sort_v0_tracks) \
    X(tpc_count_v0s) \
    X(tpc_find_v0s) \
    X(tpc_construct_canonical) \
    X(tpc_construct_from_pool) \
    X(tpc_begin_tracklets) \
    X(tpc_extend_tracklets) \
    X(tpc_turn_tracklets) \
    X(tpc_end_tracklets) \
    X(list_offsets) \
    X(copy_list)

#if defined(HLT_WITH_CPU_FORMS)
#include "algorithms/fragment_offsets_cpu.h"
#include "alice/tpc/candidates/count_v0s_cpu.h"
#include "alice/tpc/candidates/find_v0s_cpu.h"
#include "alice/tpc/merging/fit/fit_merged_tracks_cpu.h"
#include "alice/tpc/merging/links/find_turns_cpu.h"
#include "alice/tpc/merging/links/link_segments_cpu.h"
#include "alice/tpc/merging/segments/describe_segments_cpu.h"
#include "alice/tpc/seeds/find_neighbours_cpu.h"
#include "alice/tpc/tracks/construct_tracklets_cpu.h"
#include "alice/tpc/tracks/select_tracks_cpu.h"

#define HLT_CPU_FORMS(X) \
    X(fragment_offsets) \
    X(tpc_find_neighbours) \
    X(tpc_construct_tracklets) \
    X(tpc_select_tracks) \
    X(tpc_describe_segments) \
    X(tpc_link_segments) \
    X(tpc_find_turns) \
    X(tpc_fit_merged_tracks) \
    X(tpc_count_v0s) \
    X(tpc_find_v0s)
#endif
