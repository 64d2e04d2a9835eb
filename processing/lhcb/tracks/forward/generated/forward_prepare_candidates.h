// Written by tools/generate_device_headers.py from lhcb/tracks/forward/prepare_candidates.py. Do not edit.
// clang-format off
#pragma once

#include "framework/device/platform.cuh"
#include "framework/generated/batch_types.h"
#include "framework/generated/launch_types.h"

struct forward_prepare_candidates_parameters {
    const hlt::batch_header* batch;
    struct {
        const uint32_t* count;
    } velo_tracks;
    struct {
        const uint32_t* offset;
        const uint32_t* count;
        const uint16_t* zone_offset;
        const float* x;
        uint16_t* bins;
        uint32_t* cells;
        uint32_t* owner;
        __device__ uint32_t first(uint32_t event) const { return offset[event]; }
    } scifi_hits;
    struct {
        uint8_t* hit_count;
        uint16_t* ut_track;
        uint16_t* hits;
        uint16_t* ut_hits;
        float* quality;
        float* qop;
        float* x;
        float* y;
        float* tx;
        float* ty;
        __device__ uint32_t first(uint32_t event) const { return event * 1024u; }
    } forward_candidates;

    __device__ bool takes(uint32_t event) const { return event < batch->n_events; }
};
