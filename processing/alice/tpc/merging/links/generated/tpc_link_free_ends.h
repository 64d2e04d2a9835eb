// Written by tools/generate_device_headers.py from alice/tpc/merging/links/link_free_ends.py. Do not edit.
// clang-format off
#pragma once

#include "alice/tpc/merging/generated/tpc_merging_types.h"
#include "framework/device/platform.cuh"
#include "framework/generated/batch_types.h"
#include "framework/generated/launch_types.h"

struct tpc_link_free_ends_parameters {
    const hlt::batch_header* batch;
    struct {
        const uint32_t* events_first_cluster;
        const hlt::tpc_segment_end* inner;
        const hlt::tpc_segment_end* outer;
        const hlt::tpc_free_end* free_end;
        const uint32_t* cell_begins;
        uint32_t* best_end;
        __device__ uint32_t first(uint32_t event) const { return (events_first_cluster[event] / 16u + event * 36u); }
    } tpc_tracks;
    struct {
        uint32_t* flags;
    } events;
    float distance;
    float angle;
    float bend;
    float z;
    float slope;
    float max_chi2;
    float chi2_of_gap;
    float max_gap;
    float max_overlap;
    float max_turning_radius;
    float piece_distance;
    float piece_z;
    float piece_slope;
    float piece_variance;

    static constexpr uint32_t n_parts = 36u;
    __device__ uint32_t event_of(uint32_t part_in_batch) const { return part_in_batch / n_parts; }
    __device__ bool takes(uint32_t part_in_batch) const { return event_of(part_in_batch) < batch->n_events; }
};
