// Written by tools/generate_device_headers.py from lhcb/kalman/full_fit.py. Do not edit.
// clang-format off
#pragma once

#include "framework/device/platform.cuh"
#include "framework/generated/batch_types.h"
#include "framework/generated/launch_types.h"
#include "lhcb/long_tracks/generated/long_track_parameter_types.h"

struct kalman_full_fit_parameters {
    const hlt::batch_header* batch;
    const hlt::long_track_parameters* long_track_parameters;
    struct {
        const uint32_t* velo_clusters_offset;
        const float* x;
        const float* y;
        const float* tx;
        const float* ty;
        const float* c00;
        const float* c20;
        const float* c22;
        __device__ uint32_t first(uint32_t event) const { return velo_clusters_offset[event] / 2u; }
    } velo_end;
    struct {
        const uint32_t* count;
        const uint16_t* velo_track;
        const float* qop;
        const float* tx;
        const uint16_t* hits;
        float* fitted_qop;
        float* qop_error;
        float* full_chi2;
        __device__ uint32_t first(uint32_t event) const { return event * 1024u; }
    } long_tracks;
    struct {
        const uint32_t* offset;
        const float* x;
        const float* z;
        __device__ uint32_t first(uint32_t event) const { return offset[event]; }
    } scifi_hits;

    __device__ bool takes(uint32_t event) const { return event < batch->n_events; }
};
