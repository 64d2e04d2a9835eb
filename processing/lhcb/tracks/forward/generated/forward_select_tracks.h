// Written by tools/generate_device_headers.py from lhcb/tracks/forward/select_tracks.py. Do not edit.
// clang-format off
#pragma once

#include "framework/device/platform.cuh"
#include "framework/generated/batch_types.h"
#include "framework/generated/launch_types.h"

struct forward_select_tracks_parameters {
    const hlt::batch_header* batch;
    struct {
        const uint8_t* hit_count;
        const uint16_t* ut_track;
        const uint16_t* hits;
        const uint16_t* ut_hits;
        const float* quality;
        const float* qop;
        const float* x;
        const float* y;
        const float* tx;
        const float* ty;
        __device__ uint32_t first(uint32_t event) const { return event * 1024u; }
    } forward_candidates;
    struct {
        const uint32_t* offset;
        const uint32_t* owner;
        __device__ uint32_t first(uint32_t event) const { return offset[event]; }
    } scifi_hits;
    struct {
        const uint32_t* count;
    } velo_tracks;
    struct {
        uint32_t* count;
        uint16_t* velo_track;
        uint16_t* ut_track;
        uint8_t* origin;
        float* qop;
        float* x;
        float* y;
        float* tx;
        float* ty;
        float* quality;
        uint8_t* hit_count;
        uint16_t* hits;
        uint16_t* ut_hits;
        __device__ uint32_t first(uint32_t event) const { return event * 1024u; }
    } long_tracks;
    float max_shared_fraction;

    __device__ bool takes(uint32_t event) const { return event < batch->n_events; }
};
