// Written by tools/generate_device_headers.py from lhcb/tracks/kalman/velo_fit.py. Do not edit.
// clang-format off
#pragma once

#include "framework/device/platform.cuh"
#include "framework/generated/batch_types.h"
#include "framework/generated/launch_types.h"
#include "lhcb/tracks/kalman/generated/kalman_types.h"
#include "lhcb/velo/generated/velo_types.h"

struct kalman_velo_fit_parameters {
    const hlt::batch_header* batch;
    const hlt::velo_geometry* velo_geometry;
    const hlt::velo_field* velo_field;
    struct {
        const uint32_t* count;
        const uint16_t* velo_track;
        const float* fitted_qop;
        float* beam_x;
        float* beam_y;
        float* beam_z;
        float* beam_tx;
        float* beam_ty;
        float* beam_qop;
        float* beam_c00;
        float* beam_c20;
        float* beam_c22;
        float* beam_c11;
        float* beam_c31;
        float* beam_c33;
        float* chi2;
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
        __device__ uint32_t first(uint32_t event) const { return velo_clusters_offset[event]; }
    } velo_hits;
    float hit_variance;
    float start_slope_variance;
    float module_scattering;
    float foil_scattering;
    float step_position;
    float step_both;
    float beam_line_scattering;
    float beam_line_position;
    float beam_line_both;

    __device__ bool takes(uint32_t event) const { return event < batch->n_events; }
};
