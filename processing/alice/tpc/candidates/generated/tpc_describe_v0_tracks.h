// Written by tools/generate_device_headers.py from alice/tpc/candidates/describe_v0_tracks.py. Do not edit.
// clang-format off
#pragma once

#include "alice/tpc/candidates/generated/tpc_candidate_types.h"
#include "alice/tpc/merging/generated/tpc_merging_types.h"
#include "framework/device/platform.cuh"
#include "framework/generated/batch_types.h"
#include "framework/generated/launch_types.h"

struct tpc_describe_v0_tracks_parameters {
    const hlt::batch_header* batch;
    struct {
        const float* geometry;
    } tpc;
    struct {
        const uint32_t* events_first_cluster;
        const hlt::tpc_merged_track* track;
        const uint32_t* count;
        hlt::tpc_v0_track* v0_track;
        uint16_t* v0_bin;
        __device__ uint32_t first(uint32_t event) const { return (events_first_cluster[event] / 16u + event * 36u); }
    } tpc_merged_tracks;
    uint32_t min_clusters;
    float min_significance;
    float dca_constant;
    float dca_scattering;

    static constexpr uint32_t n_parts = 36u;
    __device__ uint32_t event_of(uint32_t part_in_batch) const { return part_in_batch / n_parts; }
    __device__ bool takes(uint32_t part_in_batch) const { return event_of(part_in_batch) < batch->n_events; }
};
