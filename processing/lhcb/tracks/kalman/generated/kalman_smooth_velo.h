// Written by tools/generate_device_headers.py from lhcb/tracks/kalman/smooth_velo.py. Do not edit.
// clang-format off
#pragma once

#include "framework/device/platform.cuh"
#include "framework/generated/batch_types.h"
#include "framework/generated/launch_types.h"
#include "lhcb/tracks/kalman/generated/kalman_types.h"

struct kalman_smooth_velo_parameters {
    const hlt::batch_header* batch;
    const hlt::velo_field* velo_field;
    struct {
        const uint32_t* count;
        const uint16_t* velo_track;
        const float* fitted_qop;
        __device__ uint32_t first(uint32_t event) const { return event * 1024u; }
    } long_tracks;
    struct {
        const uint32_t* velo_clusters_offset;
        const uint8_t* hit_count;
        const uint16_t* hits;
        __device__ uint32_t first(uint32_t event) const { return velo_clusters_offset[event] / 2u; }
    } velo_tracks;
    struct {
        const uint32_t* velo_clusters_offset;
        const float* x;
        const float* y;
        const float* z;
        const uint32_t* id;
        __device__ uint32_t first(uint32_t event) const { return velo_clusters_offset[event]; }
    } velo_hits;
    struct {
        uint32_t* flags;
    } events;
    struct {
        uint32_t* count;
        hlt::smoothed_state* state;
        __device__ uint32_t first(uint32_t event) const { return event * 4096u; }
    } smoothed_states;
    float hit_variance;
    float start_slope_variance;
    float module_scattering;
    float foil_scattering;
    float step_position;
    float step_both;

    __device__ bool takes(uint32_t event) const { return event < batch->n_events; }
};
