// Written by tools/generate_device_headers.py from alice/tpc/candidates/count_v0s.py. Do not edit.
// clang-format off
#pragma once

#include "alice/tpc/candidates/generated/tpc_candidate_types.h"
#include "framework/device/platform.cuh"
#include "framework/generated/batch_types.h"
#include "framework/generated/launch_types.h"

struct tpc_count_v0s_parameters {
    const hlt::batch_header* batch;
    struct {
        const uint32_t* events_first_cluster;
        const uint32_t* count;
        const hlt::tpc_v0_track* v0_track;
        const uint16_t* v0_bin;
        const uint32_t* v0_bin_begins;
        const uint32_t* v0_partners;
        uint16_t* v0s_of_track;
        uint32_t* v0_first_partners;
        __device__ uint32_t first(uint32_t event) const { return (events_first_cluster[event] / 16u + event * 36u); }
    } tpc_merged_tracks;
    struct {
        uint32_t* flags;
    } events;
    float max_dca;
    float min_radius;
    float max_radius;
    float max_ahead;
    float min_pointing;
    float min_larger_significance;
    float kaon_window;
    float lambda_window;

    static constexpr uint32_t n_parts = 36u;
    __device__ uint32_t event_of(uint32_t part_in_batch) const { return part_in_batch / n_parts; }
    __device__ bool takes(uint32_t part_in_batch) const { return event_of(part_in_batch) < batch->n_events; }
};
