// Written by tools/generate_device_headers.py from lhcb/tracks/looking_forward/find_x_tracks.py. Do not edit.
// clang-format off
#pragma once

#include "framework/device/platform.cuh"
#include "framework/generated/batch_types.h"
#include "framework/generated/launch_types.h"
#include "lhcb/tracks/long/generated/long_track_parameter_types.h"

struct looking_forward_find_x_tracks_parameters {
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
        uint8_t* x_hit_count;
        uint16_t* x_hits;
        uint32_t* n_triplet_chi2;
        __device__ uint32_t first(uint32_t event) const { return event * 1024u; }
    } ut_tracks;
    float offset_of_ut;
    float shift_of_ut;
    float sigma_shift;
    float sigma_shift_per_kink;
    float stereo_margin;
    float x_tolerance;
    float x_tolerance_per_kink;
    float min_p;
    float x_window;
    float x_window_per_bend;
    float triplet_curvature;
    float max_triplet_chi2;
    uint32_t n_triplets;
    uint32_t min_x_hits;
    float max_spread;
    uint32_t tensor_core_form;

    __device__ bool takes(uint32_t event) const { return event < batch->n_events; }
};
