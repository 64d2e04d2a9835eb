// Written by tools/generate_device_headers.py from lhcb/tracks/kalman/full_fit.py. Do not edit.
// clang-format off
#pragma once

#include "framework/device/platform.cuh"
#include "framework/generated/batch_types.h"
#include "framework/generated/launch_types.h"
#include "lhcb/tracks/kalman/generated/kalman_types.h"
#include "lhcb/tracks/long/generated/long_track_parameter_types.h"

struct kalman_full_fit_parameters {
    const hlt::batch_header* batch;
    const hlt::long_track_parameters* long_track_parameters;
    const hlt::velo_field* velo_field;
    struct {
        const uint32_t* count;
        const uint16_t* velo_track;
        const float* qop;
        const float* tx;
        const uint16_t* ut_hits;
        const uint16_t* hits;
        float* fitted_qop;
        float* qop_error;
        float* full_chi2;
        float* ut_chi2;
        float* end_x;
        float* end_y;
        float* end_tx;
        float* end_ty;
        float* end_c00;
        float* end_c20;
        float* end_c22;
        float* end_c11;
        float* end_c31;
        float* end_c33;
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
    struct {
        const uint32_t* offset;
        const float* x;
        const float* z;
        const float* weight;
        __device__ uint32_t first(uint32_t event) const { return offset[event]; }
    } ut_hits;
    struct {
        const uint32_t* offset;
        const float* x;
        const float* z;
        __device__ uint32_t first(uint32_t event) const { return offset[event]; }
    } scifi_hits;
    float hit_variance;
    float start_slope_variance;
    float module_scattering;
    float foil_scattering;
    float step_position;
    float step_both;
    float start_kink_variance;
    float oblique;
    float ut_lever_error;
    float scifi_layer_slope;
    float scifi_hit_variance;
    float scifi_oblique_variance;
    float momentum_error;
    float energy_loss_error;

    __device__ bool takes(uint32_t event) const { return event < batch->n_events; }
};
