// Written by tools/generate_device_headers.py from lhcb/secondary_vertices/select_tracks.py. Do not edit.
// clang-format off
#pragma once

#include "framework/device/platform.cuh"
#include "framework/generated/batch_types.h"
#include "framework/generated/launch_types.h"

struct secondary_vertices_select_tracks_parameters {
    const hlt::batch_header* batch;
    struct {
        const uint32_t* count;
        const float* beam_x;
        const float* beam_y;
        const float* beam_z;
        const float* beam_tx;
        const float* beam_ty;
        const float* beam_qop;
        const float* chi2;
        const float* ip;
        const float* ip_chi2;
        const uint8_t* pv;
        const uint8_t* is_muon;
        __device__ uint32_t first(uint32_t event) const { return event * 1024u; }
    } long_tracks;
    struct {
        uint32_t* count;
        uint16_t* track;
        uint32_t* use;
        float* x0;
        float* y0;
        float* tx;
        float* ty;
        float* ip_chi2;
        __device__ uint32_t first(uint32_t event) const { return event * 1024u; }
    } vertex_tracks;
    float max_chi2;
    float displaced_min_pt;
    float displaced_min_ip;
    float displaced_min_ip_chi2;
    float v0_min_pt;
    float v0_min_ip;
    float v0_min_ip_chi2;
    float v0_far_min_ip;
    float v0_far_min_ip_chi2;

    __device__ bool takes(uint32_t event) const { return event < batch->n_events; }
};
