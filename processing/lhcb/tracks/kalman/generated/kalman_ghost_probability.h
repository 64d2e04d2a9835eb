// Written by tools/generate_device_headers.py from lhcb/tracks/kalman/ghost_probability.py. Do not edit.
// clang-format off
#pragma once

#include "framework/device/platform.cuh"
#include "framework/generated/batch_types.h"
#include "framework/generated/launch_types.h"
#include "lhcb/tracks/kalman/generated/ghost_types.h"

struct kalman_ghost_probability_parameters {
    const hlt::batch_header* batch;
    const hlt::ghost_network* ghost_network;
    struct {
        const uint32_t* velo_clusters_offset;
        const uint8_t* hit_count;
        __device__ uint32_t first(uint32_t event) const { return velo_clusters_offset[event] / 2u; }
    } velo_tracks;
    struct {
        const uint32_t* count;
        const uint16_t* velo_track;
        const uint8_t* origin;
        const float* qop;
        const uint8_t* hit_count;
        const uint16_t* ut_hits;
        const float* y;
        const float* tx;
        const float* ty;
        const float* end_y;
        const float* end_tx;
        const float* end_ty;
        const float* beam_tx;
        const float* beam_ty;
        const float* fitted_qop;
        const float* qop_error;
        const float* chi2;
        const float* full_chi2;
        const float* ut_chi2;
        float* ghost_probability;
        __device__ uint32_t first(uint32_t event) const { return event * 1024u; }
    } long_tracks;

    __device__ bool takes(uint32_t event) const { return event < batch->n_events; }
};
