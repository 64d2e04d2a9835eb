// Written by tools/generate_device_headers.py from lhcb/tracks/forward/search_without_ut.py. Do not edit.
// clang-format off
#pragma once

#include "framework/device/platform.cuh"
#include "framework/generated/batch_types.h"
#include "framework/generated/launch_types.h"
#include "lhcb/tracks/long/generated/long_track_parameter_types.h"

struct forward_search_without_ut_parameters {
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
        const uint32_t* velo_clusters_offset;
        const uint32_t* count;
        const uint8_t* backward;
        __device__ uint32_t first(uint32_t event) const { return velo_clusters_offset[event] / 2u; }
    } velo_tracks;
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
    float x_window;
    float x_window_per_kink;
    float stereo_margin;
    float max_shift_spread;
    float sigma_ty;
    float sigma_ty_per_kink;
    float sigma_curvature;
    float sigma_curvature_per_kink;
    float sigma_hit;
    float hit_scatter_per_kink;
    float max_hit_chi2;
    uint32_t min_hits;
    uint32_t max_pairs;
    uint32_t max_candidates;
    float chi2_weight;
    float missing_hit_penalty;
    float quality_per_kink;
    float n_sigma;
    float min_p;
    float max_tx;
    float max_ty;
    float sigma_offset;
    float sigma_offset_per_kink;
    float sigma_shift;
    float sigma_shift_per_kink;
    uint32_t max_used_hits;
    float max_quality;
    float good_quality;

    __device__ bool takes(uint32_t event) const { return event < batch->n_events; }
};
