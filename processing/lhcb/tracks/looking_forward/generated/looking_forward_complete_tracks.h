// Written by tools/generate_device_headers.py from lhcb/tracks/looking_forward/complete_tracks.py. Do not edit.
// clang-format off
#pragma once

#include "framework/device/platform.cuh"
#include "framework/generated/batch_types.h"
#include "framework/generated/launch_types.h"
#include "lhcb/tracks/long/generated/long_track_parameter_types.h"

struct looking_forward_complete_tracks_parameters {
    const hlt::batch_header* batch;
    const hlt::long_track_parameters* long_track_parameters;
    struct {
        const uint32_t* velo_clusters_offset;
        const float* x;
        const float* y;
        const float* tx;
        const float* ty;
        __device__ uint32_t first(uint32_t event) const { return velo_clusters_offset[event] / 2u; }
    } velo_end;
    struct {
        const uint32_t* offset;
        const uint32_t* count;
        const uint16_t* bins;
        const uint32_t* cells;
        const float* x;
        const float* z;
        uint32_t* owner;
        __device__ uint32_t first(uint32_t event) const { return offset[event]; }
    } scifi_hits;
    struct {
        const uint32_t* offset;
        const float* x;
        const float* z;
        const float* weight;
        __device__ uint32_t first(uint32_t event) const { return offset[event]; }
    } ut_hits;
    struct {
        const uint32_t* count;
        const uint16_t* velo_track;
        const float* qop;
        const uint16_t* hits;
        const uint8_t* x_hit_count;
        const uint16_t* x_hits;
        __device__ uint32_t first(uint32_t event) const { return event * 1024u; }
    } ut_tracks;
    struct {
        uint32_t* flags;
    } events;
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
    float offset_of_ut;
    float shift_of_ut;
    float sigma_shift;
    float sigma_shift_per_kink;
    float stereo_margin;
    float x_tolerance;
    float x_tolerance_per_kink;
    float sigma_offset;
    float sigma_offset_per_kink;
    float sigma_ty;
    float sigma_ty_per_kink;
    float sigma_curvature;
    float sigma_curvature_per_kink;
    float sigma_hit;
    float hit_scatter_per_kink;
    float max_hit_chi2;
    uint32_t min_hits;
    float chi2_weight;
    float missing_hit_penalty;
    float quality_per_kink;
    float ut_b_of_a;
    float sigma_ut_a;
    float sigma_ut_a_per_kink;
    float sigma_ut_b;
    float sigma_ut_b_per_kink;
    float sigma_ut_c;
    float sigma_ut_c_per_kink;
    float missing_ut_hit_penalty;
    float max_quality;

    __device__ bool takes(uint32_t event) const { return event < batch->n_events; }
};
