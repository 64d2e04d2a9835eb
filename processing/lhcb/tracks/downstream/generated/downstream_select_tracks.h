// Written by tools/generate_device_headers.py from lhcb/tracks/downstream/select_tracks.py. Do not edit.
// clang-format off
#pragma once

#include "framework/device/platform.cuh"
#include "framework/generated/batch_types.h"
#include "framework/generated/launch_types.h"
#include "lhcb/tracks/downstream/generated/downstream_network_types.h"

struct downstream_select_tracks_parameters {
    const hlt::batch_header* batch;
    const hlt::downstream_network* downstream_network;
    struct {
        const uint32_t* count;
        const float* quality;
        const uint8_t* hit_count;
        const uint16_t* hits;
        __device__ uint32_t first(uint32_t event) const { return event * 2048u; }
    } scifi_seeds;
    struct {
        const uint8_t* found;
        const uint16_t* ut_hits;
        const float* x;
        const float* y;
        const float* tx;
        const float* ty;
        const float* qop;
        const float* chi2;
        const float* magnet_distance;
        const float* y_distance;
        const float* stereo_distance;
        const float* used_ut_hits;
        __device__ uint32_t first(uint32_t event) const { return event * 2048u; }
    } downstream_candidates;
    struct {
        uint32_t* flags;
    } events;
    struct {
        uint32_t* count;
        uint16_t* seed;
        float* x;
        float* y;
        float* tx;
        float* ty;
        float* qop;
        float* chi2;
        float* magnet_distance;
        float* y_distance;
        float* stereo_distance;
        float* used_ut_hits;
        float* seed_quality;
        float* ghost_probability;
        uint8_t* hit_count;
        uint16_t* hits;
        uint16_t* ut_hits;
        __device__ uint32_t first(uint32_t event) const { return event * 256u; }
    } downstream_tracks;
    struct {
        float* probability;
        __device__ uint32_t first(uint32_t event) const { return event * 2048u; }
    } downstream_candidates_scratch;
    struct {
        const uint32_t* scifi_hits_offset;
        uint32_t* scifi_owner;
        __device__ uint32_t first(uint32_t event) const { return scifi_hits_offset[event]; }
    } scifi_hits_scratch;
    struct {
        const uint32_t* ut_hits_offset;
        uint32_t* ut_owner;
        __device__ uint32_t first(uint32_t event) const { return ut_hits_offset[event]; }
    } ut_hits_scratch;
    float max_ghost_probability;
    uint32_t max_shared_ut_hits;
    uint32_t max_shared_scifi_hits;

    __device__ bool takes(uint32_t event) const { return event < batch->n_events; }
};
