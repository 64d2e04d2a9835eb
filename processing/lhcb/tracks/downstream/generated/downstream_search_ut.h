// Written by tools/generate_device_headers.py from lhcb/tracks/downstream/search_ut.py. Do not edit.
// clang-format off
#pragma once

#include "framework/device/platform.cuh"
#include "framework/generated/batch_types.h"
#include "framework/generated/launch_types.h"
#include "lhcb/tracks/downstream/generated/downstream_field_types.h"

struct downstream_search_ut_parameters {
    const hlt::batch_header* batch;
    const hlt::downstream_field* downstream_field;
    struct {
        const uint32_t* count;
    } scifi_hits;
    struct {
        const uint32_t* offset;
        const uint32_t* count;
        const float* y_begin;
        const float* y_end;
        const uint32_t* bin_begin;
        const uint16_t* bin_order;
        const float* bin_x;
        const float* bin_z;
        __device__ uint32_t first(uint32_t event) const { return offset[event]; }
    } ut_hits;
    struct {
        const uint32_t* count;
        const uint16_t* hits;
        const uint16_t* ut_hits;
        __device__ uint32_t first(uint32_t event) const { return event * 1024u; }
    } long_tracks;
    struct {
        const uint32_t* count;
        const float* x;
        const float* y;
        const float* tx;
        const float* ty;
        const float* curvature;
        const uint16_t* hits;
        __device__ uint32_t first(uint32_t event) const { return event * 2048u; }
    } scifi_seeds;
    struct {
        uint32_t* flags;
    } events;
    struct {
        uint8_t* found;
        uint16_t* ut_hits;
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
        __device__ uint32_t first(uint32_t event) const { return event * 2048u; }
    } downstream_candidates;
    struct {
        const uint32_t* scifi_hits_offset;
        uint8_t* scifi_used;
        __device__ uint32_t first(uint32_t event) const { return scifi_hits_offset[event]; }
    } scifi_hits_scratch;
    struct {
        const uint32_t* ut_hits_offset;
        uint8_t* ut_used;
        float* ut_y_begin;
        float* ut_y_end;
        float* ut_used_in_order;
        __device__ uint32_t first(uint32_t event) const { return ut_hits_offset[event]; }
    } ut_hits_scratch;
    uint32_t max_used_scifi_hits;
    uint32_t max_used_ut_hits;
    float used_hit_penalty;
    float max_origin_x;
    float min_kink;
    float max_kink;
    float x_window;
    float x_window_of_kink;
    float y_window;
    float y_window_of_kink;
    float y_margin;
    float stereo_window;
    float max_chi2;
    uint32_t max_pairs;

    __device__ bool takes(uint32_t event) const { return event < batch->n_events; }
};
