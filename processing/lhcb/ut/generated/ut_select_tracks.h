// Written by tools/generate_device_headers.py from lhcb/ut/select_tracks.py. Do not edit.
// clang-format off
#pragma once

#include "framework/device/platform.cuh"
#include "framework/generated/batch_types.h"
#include "framework/generated/launch_types.h"

struct ut_select_tracks_parameters {
    const hlt::batch_header* batch;
    struct {
        const uint32_t* count;
    } velo_tracks;
    struct {
        const uint32_t* count;
    } ut_hits;
    struct {
        const uint32_t* velo_clusters_offset;
        const uint8_t* hit_count;
        const uint16_t* hits;
        const float* quality;
        const float* qop;
        const float* x;
        const float* z;
        const float* tx;
        __device__ uint32_t first(uint32_t event) const { return velo_clusters_offset[event] / 2u; }
    } ut_candidates;
    struct {
        uint32_t* flags;
    } events;
    struct {
        uint32_t* count;
        uint16_t* velo_track;
        float* qop;
        float* x;
        float* z;
        float* tx;
        uint8_t* hit_count;
        uint16_t* hits;
        __device__ uint32_t first(uint32_t event) const { return event * 1024u; }
    } ut_tracks;
    struct {
        const uint32_t* ut_hits_offset;
        uint32_t* owner;
        __device__ uint32_t first(uint32_t event) const { return ut_hits_offset[event]; }
    } scratch;
    uint32_t max_shared_hits;

    __device__ bool takes(uint32_t event) const { return event < batch->n_events; }
};
