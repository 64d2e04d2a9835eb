// Written by tools/generate_device_headers.py from lhcb/tracks/kalman/impact_parameter.py. Do not edit.
// clang-format off
#pragma once

#include "framework/device/platform.cuh"
#include "framework/generated/batch_types.h"
#include "framework/generated/launch_types.h"
#include "lhcb/primary_vertices/generated/pv_types.h"

struct kalman_impact_parameter_parameters {
    const hlt::batch_header* batch;
    struct {
        const uint32_t* count;
        const float* beam_x;
        const float* beam_y;
        const float* beam_z;
        const float* beam_tx;
        const float* beam_ty;
        const float* beam_c00;
        const float* beam_c20;
        const float* beam_c22;
        const float* beam_c11;
        const float* beam_c31;
        const float* beam_c33;
        float* ip;
        float* ip_chi2;
        uint8_t* pv;
        __device__ uint32_t first(uint32_t event) const { return event * 1024u; }
    } long_tracks;
    struct {
        const hlt::primary_vertex* vertex;
        const uint32_t* count;
        __device__ uint32_t first(uint32_t event) const { return event * 32u; }
    } pvs;

    __device__ bool takes(uint32_t event) const { return event < batch->n_events; }
};
