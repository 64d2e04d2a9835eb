// Written by tools/generate_device_headers.py from alice/tpc/merging/links/join_segments.py. Do not edit.
// clang-format off
#pragma once

#include "alice/tpc/merging/generated/tpc_merging_types.h"
#include "framework/device/platform.cuh"
#include "framework/generated/batch_types.h"
#include "framework/generated/launch_types.h"

struct tpc_join_segments_parameters {
    const hlt::batch_header* batch;
    struct {
        const uint32_t* events_first_cluster;
        const uint32_t* count;
        const hlt::tpc_segment_end* inner;
        const hlt::tpc_segment_end* outer;
        const uint32_t* best_end;
        const uint32_t* longer;
        const uint32_t* shorter;
        const float* turn_score;
        const uint32_t* turn_chain;
        __device__ uint32_t first(uint32_t event) const { return (events_first_cluster[event] / 16u + event * 36u); }
    } tpc_tracks;
    struct {
        uint32_t* flags;
    } events;
    struct {
        const uint32_t* events_first_cluster;
        uint32_t* count;
        uint32_t* first_segment;
        uint16_t* run;
        uint16_t* size;
        __device__ uint32_t first(uint32_t event) const { return (events_first_cluster[event] / 16u + event * 36u); }
    } tpc_merged_tracks;
    struct {
        const uint32_t* events_first_cluster;
        uint32_t* segment;
        uint32_t* count;
        __device__ uint32_t first(uint32_t event) const { return (events_first_cluster[event] / 16u + event * 36u); }
    } tpc_merged_segments;

    __device__ bool takes(uint32_t event) const { return event < batch->n_events; }
};
